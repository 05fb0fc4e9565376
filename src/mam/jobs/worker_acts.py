"""The acts of a worker on the job that it holds: the agent started, is quiet, or has ended.

What the agent reports is stored in `said` and does not end the job (mam.jobs.acts); the worker verifies and ends it.
"""

from __future__ import annotations

from mam.jobs import acts
from mam.jobs.change import Change, EventBody, moved, published, unchanged
from mam.jobs.record import Job
from mam.jobs.status import COMPLETED, ERROR, WAITING
from mam.util.clock import Moment, iso_milli
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.record import Json


class Ending(Frozen):
    """How an attempt ended, as the worker verified it."""

    run: Json
    """The usage of the process and how it ended."""
    checks: Json | None = None
    result: str | None = None
    reason: str | None = None
    """Why it failed; None on success."""
    retryable: bool = False

    @property
    def checked(self) -> bool | None:
        """Whether the worker verified anything before it completed the job."""
        looked = self.checks or {}
        return None if self.reason is not None else bool(looked.get("artifacts") or looked.get("script"))


class OutcomeReported(Exception):
    """The agent has reported an outcome that the worker had not read when it ended the job."""

    def __init__(self, said: Json) -> None:
        self.said = said


def started(job: Job, moment: Moment, *, attempt: int, run: Json, claim_id: str | None = None) -> Change:
    """The agent has started; subscribers get an event."""
    acts.check_fence(job, attempt, claim_id)
    return published(unchanged(job.replace(run=run, checks=None)), "started", f"attempt {attempt}", moment)


def quiet(job: Job, moment: Moment, *, attempt: int, seconds: int, claim_id: str | None = None) -> Change:
    """The agent exceeded its idle timeout. Unlike other events, this one is no sign of life."""
    acts.check_fence(job, attempt, claim_id)
    return published(unchanged(job), "progress", f"quiet for {seconds} s", moment, {"quiet": True})


def finish(
    job: Job, moment: Moment, *,
    attempt: int, ending: Ending, delay_seconds: float, claim_id: str | None = None, began: Json | None = None,
    only_if_unreported: bool = False,
) -> Change:  # fmt: skip
    """Ends the attempt. `began` is the run of an agent that ended before mam recorded its start. With
    `only_if_unreported` the job ends only if the agent has reported no outcome; otherwise OutcomeReported is raised."""
    if acts.is_repeated_end(job, COMPLETED if ending.reason is None else ERROR, attempt, claim_id):
        return unchanged(job)
    if only_if_unreported and job.said is not None:
        raise OutcomeReported(job.said)
    if began is not None:
        return _with_start(
            started(job, moment, attempt=attempt, claim_id=claim_id, run=began),
            lambda now: finish(
                now, moment, attempt=attempt, claim_id=claim_id, ending=ending, delay_seconds=delay_seconds
            ),
        )
    own = job.replace(supervised=False, run=ending.run, checks=ending.checks)
    body = _reported_event(job)
    if ending.reason is None:
        change = acts.complete(own, moment, attempt=attempt, result=ending.result, checked=ending.checked, body=body)
    elif not ending.retryable:
        change = acts.fail(own, moment, attempt=attempt, reason=ending.reason, result=ending.result, body=body)
    else:
        own = own.replace(result=ending.result)
        return acts.fail_retryable(own, moment, attempt=attempt, reason=ending.reason, delay_seconds=delay_seconds)
    return change.replace(before=job)  # an end sets every field in which `own` differs


def postpone(
    job: Job, moment: Moment, *,
    attempt: int, reason: str, seconds: float, claim_id: str | None = None, waiting_for: str = "place",
) -> Change:  # fmt: skip
    """The job waits, because this worker lacks its directory or the session cannot take it. This costs no retry."""
    acts.check_fence(job, attempt, claim_id)
    due_at = iso_milli(moment.wall_ms + round(seconds * 1000))
    wait = {"owner": None, "reason": reason, "waiting_for": waiting_for, "due_at": due_at}
    return moved(job, WAITING, moment, "worker", wait)


def hand_back(
    job: Job, moment: Moment, *,
    attempt: int, run: Json | None, claim_id: str | None = None, began: Json | None = None, reason: str | None = None,
) -> Change:  # fmt: skip
    """The worker stops before the work is done, or cannot start it. This costs neither a retry nor a loss."""
    if began is not None:
        return _with_start(
            started(job, moment, attempt=attempt, claim_id=claim_id, run=began),
            lambda now: hand_back(now, moment, attempt=attempt, claim_id=claim_id, run=run, reason=reason),
        )
    held = job if run is None else job.replace(run=run)
    return acts.release(held, moment, attempt=attempt, claim_id=claim_id, reason=reason)


def _with_start(began: Change, end: Callable[[Job], Change]) -> Change:
    ended = end(began.job)
    return ended.replace(lines=began.lines + ended.lines)


def _reported_event(job: Job) -> EventBody | None:
    """The detail and data that the agent reported for the terminal event, if any."""
    said = job.said or {}
    if said.get("status") not in (COMPLETED, ERROR) or not ("detail" in said or "data" in said):
        return None
    return EventBody(detail=said.get("detail", ""), data=said.get("data", {}))
