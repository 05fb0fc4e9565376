"""A worker's hold on one job under one claim: everything that it writes is fenced by the attempt and the claim id."""

from __future__ import annotations

from mam.errors import StoreMissing, StoreUnavailable
from mam.jobs import acts, usage_limit, worker_acts
from mam.jobs.ending import supervised_end
from mam.jobs.sweep import backoff_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from mam.jobs.change import Change
    from mam.jobs.record import Job, Json
    from mam.jobs.worker_acts import Ending
    from mam.registry import Registry
    from mam.util.clock import Moment

    class FenceFields(TypedDict):
        """What names the claim in every write."""

        attempt: int
        claim_id: str | None


STORE_UNREACHABLE = (StoreUnavailable, StoreMissing)
"""What a store that does not answer raises. To a holder it is away: a directory that was moved may come back."""


class Claim:
    def __init__(self, registry: Registry, job: Job) -> None:
        self._registry = registry
        self._job_id = job.job_id
        self._fence: FenceFields = {"attempt": job.attempt, "claim_id": job.claim_id}

    def read(self) -> Job:
        return self._registry.store.get(self._job_id)

    def renew(self, lease_seconds: float, *, heard: bool) -> Job:
        """`heard` says whether the agent gave a sign; the worker's own breath is none."""
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
        """Told by the worker about its agent, with what is known of the run by now."""
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

    def finish(self, ending: Ending, began: Json | None = None, *, only_if_unreported: bool = False) -> Job:
        """With `only_if_unreported`, worker_acts.OutcomeReported is raised if the agent has reported an outcome."""
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
        """What was seen of the agent, as an event of the job."""
        return self._registry.publish(self._job_id, event=event, detail=detail, data=data, **self._fence)

    def hand_back(self, run: Json | None = None, began: Json | None = None, reason: str | None = None) -> Job:
        return self._registry.act(
            self._job_id, "hand back",
            lambda job, now: worker_acts.hand_back(
                job, now, **self._fence, run=run, began=began, reason=reason
            ),
        )  # fmt: skip
