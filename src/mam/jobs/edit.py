"""Changes what a job asks for, while no worker holds it."""

from __future__ import annotations

from mam.errors import Refused
from mam.jobs.change import Change, audit_record, moved, touched, unchanged
from mam.jobs.record import Job
from mam.jobs.status import PENDING, WAITING
from mam.util.clock import Moment, iso_milli
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

TIME = "time"
"""The value of `waiting_for` for a job with a start time."""


class Edit(Frozen):
    """The new values; None leaves a field as it is."""

    prompt: str | None = None
    label: str | None = None
    priority: int | None = None
    due_ms: int | None = None
    """The earliest start. A time that has passed makes a job pending that waits for its start time."""


def edit(job: Job, moment: Moment, *, changes: Edit, by: str, seen: Job | None = None) -> Change:
    """Refused for a job that a worker holds or that has ended, and for one that changed since the user read it as
    `seen`. The audit line holds the values before and after."""
    if job.status not in (PENDING, WAITING):
        raise Refused(why=f"Job {job.job_id} is {job.status}; only a job that no worker has claimed can be edited.")
    if seen is not None and (job.attempt, job.prompt) != (seen.attempt, seen.prompt):
        raise Refused(why=f"Job {job.job_id} changed while you edited it; nothing was written.")
    wanted = {"prompt": changes.prompt, "agent_session": changes.label, "priority": changes.priority}
    fields = {name: value for name, value in wanted.items() if value is not None and value != getattr(job, name)}
    start = _start(job, moment, changes.due_ms)
    changed = {**fields, **start}
    if not changed:
        return unchanged(job)
    before = {name: getattr(job, name) for name in changed}
    line = audit_record("edited", moment, job, by=by, before=before, after=dict(changed))
    status = WAITING if start.get("due_at") else PENDING
    if not start or status is job.status:
        return Change(job=touched(job, moment, changed), lines=(line,))
    return moved(job, status, moment, "edit", changed, lines=(line,))


def _start(job: Job, moment: Moment, due_ms: int | None) -> Json:
    """The fields of a new start time that differ."""
    if due_ms is None:
        return {}
    if job.status is WAITING and job.waiting_for != TIME:
        raise Refused(why=f"Job {job.job_id} waits for {job.waiting_for}; its start time cannot be changed now.")
    waits = due_ms > moment.wall_ms
    start = {"waiting_for": TIME if waits else None, "due_at": iso_milli(due_ms) if waits else None}
    return {} if start == {name: getattr(job, name) for name in start} else start
