"""A worker's claim on one job. Attempt and claim id fence everything that the worker writes."""

from __future__ import annotations

from threading import Lock

from mam.errors import StoreMissing, StoreUnavailable
from mam.jobs import acts, usage_limit, worker_acts
from mam.jobs.ending import supervised_end
from mam.jobs.sweep import backoff_seconds
from mam.jobs.worker_acts import OutcomeReported
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from mam.jobs.change import Change
    from mam.jobs.record import Job, Json
    from mam.jobs.worker_acts import Ending
    from mam.registry import Registry
    from mam.util.clock import Moment

    class FenceFields(TypedDict):
        """The fence of every write."""

        attempt: int
        claim_id: str | None


STORE_UNREACHABLE = (StoreUnavailable, StoreMissing)
"""A store that does not answer. A directory that was moved may come back, so the holder of a claim retries."""


class Reported(Frozen):
    """The agent has reported an outcome, so the job did not end."""

    outcome: Json


class Claim:
    def __init__(self, registry: Registry, job: Job) -> None:
        self._registry = registry
        self._job_id = job.job_id
        self._fence: FenceFields = {"attempt": job.attempt, "claim_id": job.claim_id}

    def read(self) -> Job:
        return self._registry.store.get(self._job_id)

    def renew(self, lease_seconds: float, *, heard: bool) -> Job:
        """`heard` is whether the agent has shown activity since the last renewal."""
        return self._registry.act(
            self._job_id, "renew",
            lambda job, now: acts.heartbeat(
                job, now, **self._fence, lease_seconds=lease_seconds, heard=heard
            ),
        )  # fmt: skip

    def started(self, run: Json) -> Job:
        return self._registry.act(
            self._job_id, "started", lambda job, now: worker_acts.started(job, now, **self._fence, run=run)
        )

    def progress(self, detail: str, run: Json) -> Job:
        """Publishes progress of the agent and stores `run`, as far as it is known."""
        return self._registry.act(
            self._job_id, "progress",
            lambda job, now: acts.publish(
                job.replace(run=run), now, event="progress", detail=detail, data={}, **self._fence
            ),
        )  # fmt: skip

    def limited(self, until_ms: int, reason: str, run: Json) -> Job:
        return self._registry.act(
            self._job_id, "limited",
            lambda job, now: usage_limit.wait_for_reset(
                job, now, **self._fence, until_ms=until_ms, reason=reason, run=run
            ),
        )  # fmt: skip

    def quiet(self, seconds: int) -> Job:
        return self._registry.act(
            self._job_id, "quiet", lambda job, now: worker_acts.quiet(job, now, **self._fence, seconds=seconds)
        )

    def finish(self, ending: Ending, began: Json | None = None, *, only_if_unreported: bool = False) -> Job | Reported:
        """With `only_if_unreported` the job ends only if the agent has reported no outcome."""
        try:
            return self._finish(ending, began, only_if_unreported=only_if_unreported)
        except OutcomeReported as reported:
            return Reported(outcome=reported.said)

    def end(self, ending: Ending, began: Json | None = None) -> Job:
        return self._finish(ending, began, only_if_unreported=False)

    def _finish(self, ending: Ending, began: Json | None, *, only_if_unreported: bool) -> Job:
        if began is None and not ending.retryable:
            ended = supervised_end(**self._fence, ending=ending, only_if_unreported=only_if_unreported)
            return self._registry.end(self._job_id, "finish", ended)
        chance = self._registry.store.clock.chance()

        def act(job: Job, now: Moment) -> Change:
            return worker_acts.finish(
                job, now, **self._fence, ending=ending, delay_seconds=backoff_seconds(job.retries, chance),
                began=began, only_if_unreported=only_if_unreported,
            )  # fmt: skip

        return self._registry.act(self._job_id, "finish", act)

    def postpone(self, reason: str, seconds: float, waiting_for: str = "place") -> Job:
        return self._registry.act(
            self._job_id, "postpone",
            lambda job, now: worker_acts.postpone(
                job, now, **self._fence, reason=reason, seconds=seconds, waiting_for=waiting_for
            ),
        )  # fmt: skip

    def publish(self, event: str, detail: str, data: Json) -> Job:
        return self._registry.publish(self._job_id, event=event, detail=detail, data=data, **self._fence)

    def hand_back(self, run: Json | None = None, began: Json | None = None, reason: str | None = None) -> Job:
        return self._registry.act(
            self._job_id, "hand back",
            lambda job, now: worker_acts.hand_back(
                job, now, **self._fence, run=run, began=began, reason=reason
            ),
        )  # fmt: skip


class StartReporter:
    """Reports that an agent runs: at once when the agent uses its door, otherwise a moment after its start. The start
    and the end of a shorter run are reported in one write. The attempt's thread and the door's may both call `report`;
    one of them writes. The processes are in the pid file before (`process/pidfiles.py`)."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._lock = Lock()
        self._run: Json | None = None
        self.has_started = False

    def agent_started(self, run: Json) -> None:
        with self._lock:
            self._run = run
            self.has_started = True

    def report(self) -> None:
        """Does nothing before the start, and after it has been reported."""
        with self._lock:
            if self._run is not None:
                self._claim.started(self._run)
                self._run = None

    def unreported(self) -> Json | None:
        """The start that the writer of the end must report too."""
        with self._lock:
            return self._run
