"""Why a job is not running, in a sentence or two, from the same predicates as the claim."""

from __future__ import annotations

from mam.clock import Moment
from mam.jobs.record import Job
from mam.jobs.status import COMPLETED, PENDING, RUNNING, WAITING
from mam.jobs.sweep import is_due, left_ms, stalled

_WAITS = {
    "retry": "its next try",
    "reset": "its agent's usage limit to reset",
    "time": "its start time",
    "dependency": "another job",
}


def explain(job: Job, moment: Moment, ahead: int) -> list[str]:
    """Sentences for a person: what holds the job, and what will move it."""
    if job.status is PENDING:
        return _pending(job, ahead)
    if job.status is WAITING:
        return _waiting(job, moment)
    if job.status is RUNNING:
        return _running(job, moment)
    return _ended(job)


def _pending(job: Job, ahead: int) -> list[str]:
    said = [f"It may be claimed now by anyone who picks {job.agent_session!r}."]
    if ahead:
        jobs = "job" if ahead == 1 else "jobs"
        said.append(f"{ahead} pending {jobs} of that label will be claimed first.")
    else:
        said.append("It is the next one of that label, so nobody has picked since it became pending.")
    if job.losses:
        said.append(f"It was lost {job.losses} of {job.max_losses} times: a holder's lease ran out.")
    return said


def _waiting(job: Job, moment: Moment) -> list[str]:
    what = _WAITS.get(job.waiting_for or "", job.waiting_for or "something")
    left = left_ms(job, moment)
    when = "" if left is None else f" at {job.due_at}, {_in(left)}"
    said = [f"It waits for {what}{when}."]
    if job.waiting_for == "retry":
        said.append(f"Retry {job.retries} of {job.max_retries}, after: {job.reason}.")
    if is_due(job, moment):
        said.append("That time has come: the next `pick` or `wait` of anyone makes it pending.")
    return said


def _running(job: Job, moment: Moment) -> list[str]:
    said = [f"It is running: attempt {job.attempt}, held by {job.owner or 'somebody unnamed'}."]
    left = left_ms(job, moment)
    if left is not None and job.lease is not None:
        ends = (
            "The next `pick` or `wait` of anyone takes it back."
            if left <= 0
            else "Nobody else can claim it until then."
        )
        said.append(f"Its lease {'ran' if left <= 0 else 'runs'} out at {job.lease.expires_at}, {_in(left)}. {ends}")
    if stalled(job, moment):
        said.append(f"It is stalled: no sign of life since {job.heard_at or job.updated_at}.")
    return said


def _ended(job: Job) -> list[str]:
    if job.status is COMPLETED:
        why = "nobody looked at its artifacts" if job.expected_artifacts else "there was nothing to look at"
        checked = "" if job.checked else f" (unchecked: {why})"
        return [f"It completed at {job.ended_at or job.updated_at}{checked}."]
    why = f": {job.reason}" if job.reason and job.reason != job.status else ""
    return [
        f"It ended in {job.status} at {job.ended_at or job.updated_at}{why}.",
        f"`mam retry {job.job_id[:8]}` registers it anew.",
    ]


def _in(left_ms: int) -> str:
    """`in 1 h 59 min`, `3 s ago`: the two largest units, rounded to whole seconds."""
    seconds = round(abs(left_ms) / 1000)
    parts = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}")
    span = " ".join(parts[:2]) or "0 s"
    return f"{span} ago" if left_ms <= 0 else f"in {span}"
