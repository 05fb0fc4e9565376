"""A worker's hold on one job under one attempt: everything that it writes is fenced by both."""

from __future__ import annotations

from mam.errors import StoreMissing, StoreUnavailable
from mam.jobs import acts, limit, supervised
from mam.jobs.sweep import backoff_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.clock import Moment
    from mam.jobs.change import Change
    from mam.jobs.record import Job, Json
    from mam.jobs.supervised import Ending
    from mam.registry import Registry

AWAY = (StoreUnavailable, StoreMissing)
"""What a store that does not answer raises. To a holder it is away: a directory that was moved may come back."""


class Spoken(Exception):
    """The agent has said something that was not known when its end was to be written."""

    def __init__(self, said: Json) -> None:
        self.said = said


class Holding:
    def __init__(self, registry: Registry, job: Job) -> None:
        self._registry = registry
        self._job_id = job.job_id
        self._attempt = job.attempt

    def look(self) -> Job:
        return self._registry.store.get(self._job_id)

    def renew(self, lease_seconds: float, *, heard: bool) -> Job:
        """`heard` says whether the agent gave a sign; the worker's own breath is none."""
        return self._registry.act(
            self._job_id, "renew",
            lambda job, now: acts.heartbeat(
                job, now, attempt=self._attempt, lease_seconds=lease_seconds, heard=heard
            ),
        )  # fmt: skip

    def started(self, run: Json) -> Job:
        return self._registry.act(
            self._job_id, "started", lambda job, now: supervised.started(job, now, attempt=self._attempt, run=run)
        )

    def progress(self, detail: str, run: Json) -> Job:
        """Told by the worker about its agent, with what is known of the run by now."""
        return self._registry.act(
            self._job_id, "progress",
            lambda job, now: acts.publish(
                job.replace(run=run), now, event="progress", detail=detail, data={}, attempt=self._attempt
            ),
        )  # fmt: skip

    def limited(self, until_ms: int, reason: str, run: Json) -> Job:
        return self._registry.act(
            self._job_id, "limited",
            lambda job, now: limit.limited(
                job, now, attempt=self._attempt, until_ms=until_ms, reason=reason, run=run
            ),
        )  # fmt: skip

    def quiet(self, seconds: int) -> Job:
        return self._registry.act(
            self._job_id, "quiet", lambda job, now: supervised.quiet(job, now, attempt=self._attempt, seconds=seconds)
        )

    def finish(self, ending: Ending, began: Json | None = None, *, unsaid: bool = False) -> Job:
        """With `unsaid` it ends only if the agent has said nothing, and raises Spoken otherwise."""
        chance = self._registry.store.clock.chance()

        def act(job: Job, now: Moment) -> Change:
            if unsaid and job.said is not None and job.attempt == self._attempt:
                raise Spoken(job.said)
            delay = backoff_seconds(job.retries, chance)
            return supervised.finish(job, now, attempt=self._attempt, ending=ending, delay_seconds=delay, began=began)

        return self._registry.act(self._job_id, "finish", act)

    def postpone(self, reason: str, seconds: float, waiting_for: str = "place") -> Job:
        return self._registry.act(
            self._job_id, "postpone",
            lambda job, now: supervised.postpone(
                job, now, attempt=self._attempt, reason=reason, seconds=seconds, waiting_for=waiting_for
            ),
        )  # fmt: skip

    def tell(self, event: str, detail: str, data: Json) -> Job:
        """What was seen of the agent, as an event of the job."""
        return self._registry.publish(self._job_id, event=event, detail=detail, data=data, attempt=self._attempt)

    def hand_back(self, run: Json | None = None, began: Json | None = None, reason: str | None = None) -> Job:
        return self._registry.act(
            self._job_id, "hand back",
            lambda job, now: supervised.hand_back(
                job, now, attempt=self._attempt, run=run, began=began, reason=reason
            ),
        )  # fmt: skip
