"""What an act does to one job: the record after it, and the lines that say what happened.

A line is what the audit log holds: `registered`, `status_changed`, `published` with the exact payload, and the markers
`reserved` and `imported` for sequence numbers that carry no event. A change without lines is a no-op.
"""

from __future__ import annotations

from mam.clock import Moment
from mam.events.event import event_payload
from mam.frozen import Frozen
from mam.jobs.record import Job
from mam.jobs.status import RUNNING, Status, check_move

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Line = dict[str, Any]


class Telling(Frozen):
    """What the writer wants to say in the terminal event."""

    detail: str = ""
    data: dict[str, Any] = {}  # noqa: RUF012 - frozen by convention: nothing in mam writes into a record's dicts


_NOTHING = Telling()


class Change(Frozen):
    job: Job
    lines: tuple[Line, ...] = ()

    def then(self, job: Job, *lines: Line) -> Change:
        return Change.of({"job": job, "lines": self.lines + lines})


def unchanged(job: Job) -> Change:
    return Change.of({"job": job, "lines": ()})


def line(event: str, moment: Moment, job: Job, **facts: object) -> Line:
    said: Line = {"timestamp": moment.second, "event": event, "job_id": job.job_id}
    for name, value in facts.items():
        if value is not None:
            said[name] = value
    return said


def touched(job: Job, moment: Moment, fields: dict[str, Any]) -> Job:
    """The job with some fields changed now; the clock may have stepped back since it was created."""
    now = moment.second
    return Job.of({**job.__dict__, "updated_at": now if now > job.created_at else job.created_at, **fields})


def moved(
    change: Change,
    to: Status,
    moment: Moment,
    *,
    by: str,
    unfenced: bool = False,
    told: Telling | None = None,
    **fields: object,
) -> Change:
    """The job in another status, with the line that says so and, at an end, the terminal event."""
    job = change.job
    check_move(job.job_id, job.status, to)
    if to is not RUNNING:
        fields = {"lease": None, "claimant": None, "supervised": False, **fields}
    if to.ended:
        fields = {"ended_at": moment.second, "waiting_for": None, "due_at": None, **fields}
    fields["status"] = to
    after = touched(job, moment, fields)
    said = line("status_changed", moment, job)
    said["from"], said["to"], said["by"] = job.status, to, by
    if after.attempt:
        said["attempt"] = after.attempt
    if to is RUNNING and after.owner is not None:
        said["owner"] = after.owner
    for name in ("losses", "reason"):
        if fields.get(name) is not None:
            said[name] = fields[name]
    if unfenced:
        said["unfenced"] = True
    change = change.then(after, said)
    return _with_terminal_event(change, moment, told or _NOTHING) if to.ended else change


def published(change: Change, event: str, detail: str, moment: Moment, data: dict[str, Any] | None = None) -> Change:
    """The job with one more event: number and event are given in the same act, so there are no gaps."""
    job = change.job
    payload = event_payload(
        seq=job.last_seq + 1, job_id=job.job_id, event=event, moment=moment, detail=detail, data=data
    )
    told = touched(job, moment, {"last_seq": job.last_seq + 1})
    return change.then(told, line("published", moment, job, payload=payload))


def marked(change: Change, marker: str, upto: int, moment: Moment) -> Change:
    """Sequence numbers that were handed out without an event; one line stands for the whole run of them."""
    job = change.job
    said = line(marker, moment, job, seq=job.last_seq + 1, upto=upto)
    return change.then(touched(job, moment, {"last_seq": upto}), said)


def _with_terminal_event(change: Change, moment: Moment, told: Telling) -> Change:
    job = change.job
    event = "completed" if job.status is Status.COMPLETED else "error"
    detail = told.detail or job.reason or job.status
    return published(change, event, detail, moment, {**told.data, "status": job.status})
