"""What a worker says about the job it holds: that its agent runs, that it has gone quiet, and how it ended.

The agent's own word is kept in `said` and moves nothing (mam.jobs.acts); these acts are the worker's, who has looked.
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
    """How an attempt ended, as the worker found it."""

    run: Json
    """What the process took and how it went."""
    checks: Json | None = None
    result: str | None = None
    reason: str | None = None
    """Why it failed; None when it did what was expected."""
    retryable: bool = False

    @property
    def checked(self) -> bool | None:
        """Whether the worker looked at anything before it found that the work is done."""
        looked = self.checks or {}
        return None if self.reason is not None else bool(looked.get("artifacts") or looked.get("script"))


class OutcomeReported(Exception):
    """The agent has reported something that the worker did not know when it ended the job."""

    def __init__(self, said: Json) -> None:
        self.said = said


def started(job: Job, moment: Moment, *, attempt: int, run: Json, claim_id: str | None = None) -> Change:
    """The agent runs. From here on there is something to watch, and subscribers get an event."""
    acts.check_fence(job, attempt, claim_id)
    return published(unchanged(job.replace(run=run, checks=None)), "started", f"attempt {attempt}", moment)


def quiet(job: Job, moment: Moment, *, attempt: int, seconds: int, claim_id: str | None = None) -> Change:
    """The agent was silent for longer than it should be. Unlike other events this is no sign of life."""
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
    told = _reported_event(job)
    if ending.reason is None:
        change = acts.complete(own, moment, attempt=attempt, result=ending.result, checked=ending.checked, told=told)
    elif not ending.retryable:
        change = acts.fail(own, moment, attempt=attempt, reason=ending.reason, result=ending.result, told=told)
    else:
        own = own.replace(result=ending.result)
        return acts.fail_retryable(own, moment, attempt=attempt, reason=ending.reason, delay_seconds=delay_seconds)
    return change.replace(before=job)  # an end sets everything that `own` differs in


def postpone(
    job: Job, moment: Moment, *,
    attempt: int, reason: str, seconds: float, claim_id: str | None = None, waiting_for: str = "place",
) -> Change:  # fmt: skip
    """This worker does not have the job's directory, or its session cannot take it; another may, or it may come. That
    costs no retry."""
    acts.check_fence(job, attempt, claim_id)
    due_at = iso_milli(moment.wall_ms + round(seconds * 1000))
    wait = {"owner": None, "reason": reason, "waiting_for": waiting_for, "due_at": due_at}
    return moved(job, WAITING, moment, "worker", wait)


def hand_back(
    job: Job, moment: Moment, *,
    attempt: int, run: Json | None, claim_id: str | None = None, began: Json | None = None, reason: str | None = None,
) -> Change:  # fmt: skip
    """The worker has to go before the work is done, or cannot begin it; that costs the job nothing."""
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
    """The agent's own words for the terminal event, if it had any."""
    said = job.said or {}
    if said.get("status") not in (COMPLETED, ERROR) or not ("detail" in said or "data" in said):
        return None
    return EventBody(detail=said.get("detail", ""), data=said.get("data", {}))
