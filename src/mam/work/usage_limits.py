"""What follows from a usage limit that an attempt has met: its agent pauses, its job waits, one is tried, the rest
follow."""

from __future__ import annotations

from mam.errors import MamError
from mam.jobs.usage_limit import end_of_limit, is_probe, limit_pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json
    from mam.registry import Registry
    from mam.work.claim import Claim


class UsageLimits:
    def __init__(self, registry: Registry, claim: Claim, job: Job) -> None:
        self._registry = registry
        self._claim = claim
        self._job = job
        self._hits = _hits_of(job)

    def wait_for_reset(self, words: str, resets_at_ms: int | None, facts: Json, *, answered: bool) -> Job:
        """First the pause: whoever dies in between leaves a pause that ends by itself, and a job that its lease brings
        back."""
        hits = 0 if answered else self._hits
        now = self._registry.store.clock.now()
        until_ms = end_of_limit(resets_at_ms, hits, now)
        reason = f"usage limit of {self._job.agent}: {words}"
        pause = limit_pause(self._registry.store.pauses(), self._job, until_ms, reason, now)
        if pause is not None:
            self._registry.pause(pause)
        facts = {**facts, "agent": {**facts.get("agent", {}), "limits": hits + 1}}
        return self._claim.limited(until_ms, reason, facts)

    def resume_others(self) -> None:
        """They waited for what becomes of this one. If that cannot be told now, their pause ends by itself."""
        hits, self._hits = self._hits, 0
        try:
            if hits and is_probe(self._registry.store.pauses(), self._job):
                self._registry.resume(self._job.agent, None)
        except (MamError, OSError):
            return


def _hits_of(job: Job) -> int:
    """How many limits in a row this job has met; an answer in between begins anew."""
    about = (job.run or {}).get("agent")
    hits = about.get("limits") if isinstance(about, dict) else None
    return hits if type(hits) is int and 0 <= hits < 1000 else 0
