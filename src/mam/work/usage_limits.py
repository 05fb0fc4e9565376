"""Usage limits: after an attempt meets one, its agent is paused and its job waits. After the reset mam lets one job try
(the probe), and resumes the agent when that job gets an answer."""

from __future__ import annotations

from mam.errors import MamError
from mam.jobs.usage_limit import end_of_limit, is_probe, limit_pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.work.claim import Claim
    from mam.work.verdict import WaitForReset


class UsageLimits:
    def __init__(self, registry: Registry, claim: Claim, job: Job) -> None:
        self._registry = registry
        self._claim = claim
        self._job = job
        self._hits = _hits_of(job)

    def wait_for_reset(self, limit: WaitForReset) -> Job:
        """Writes the pause first: a worker that is killed between the two writes leaves a pause that ends at the reset
        and a job that its lease returns."""
        hits = 0 if limit.has_answered else self._hits
        until_ms, reason = self.pause_agent(limit)
        run = {**limit.run, "agent": {**limit.run.get("agent", {}), "limits": hits + 1}}
        return self._claim.limited(until_ms, reason, run)

    def pause_agent(self, limit: WaitForReset) -> tuple[int, str]:
        """Stops claims for the agent. Returns until when the job should wait, and why."""
        hits = 0 if limit.has_answered else self._hits
        now = self._registry.store.clock.now()
        until_ms = end_of_limit(limit.resets_at_ms, hits, now)
        reason = f"usage limit of {self._job.agent}: {limit.text}"
        pause = limit_pause(self._registry.store.pauses(), self._job, until_ms, reason, now)
        if pause is not None:
            self._registry.pause(pause)
        return until_ms, reason

    def resume_now(self) -> None:
        """A person says that the limit is over: ends the agent's pause, if this job is its probe."""
        if is_probe(self._registry.store.pauses(), self._job):
            self._registry.resume(self._job.agent, None)

    def resume_others(self) -> None:
        """Ends the agent's pause if this job was the probe. If the store is away, the pause ends at its time."""
        hits, self._hits = self._hits, 0
        try:
            if hits and is_probe(self._registry.store.pauses(), self._job):
                self._registry.resume(self._job.agent, None)
        except (MamError, OSError):
            return


def _hits_of(job: Job) -> int:
    """How many limits in a row this job has met; an answer resets the count."""
    agent = (job.run or {}).get("agent")
    hits = agent.get("limits") if isinstance(agent, dict) else None
    return hits if type(hits) is int and 0 <= hits < 1000 else 0
