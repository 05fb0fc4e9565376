"""What an act does to one job: the record after it, and the lines that say what happened.

A line is what the audit log holds: `registered`, `status_changed`, `published` with the exact payload, and the markers
`reserved` and `imported` for sequence numbers that carry no event. A change without lines is a no-op.
"""

from __future__ import annotations

from mam.events.event import event_payload
from mam.jobs.record import Job
from mam.jobs.status import COMPLETED, RUNNING, Status, check_move
from mam.util.clock import Moment
from mam.util.frozen import Frozen, allocate, set_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.jobs.record import Json

    AuditRecord = dict[str, Any]


class EventBody(Frozen):
    """What the writer wants to say in the terminal event."""

    detail: str = ""
    data: dict[str, Any] = {}  # noqa: RUF012 - frozen by convention: nothing in mam writes into a record's dicts


class Change(Frozen):
    job: Job
    lines: tuple[AuditRecord, ...] = ()
    before: Job | None = None
    """The job that it began with, if `fields` are all that the act set; a store then compares nothing."""
    fields: Json = {}  # noqa: RUF012

    def then(self, job: Job, *lines: AuditRecord) -> Change:
        return Change.from_fields({"job": job, "lines": self.lines + lines, "before": None, "fields": {}})


def unchanged(job: Job) -> Change:
    return Change.from_fields({"job": job, "lines": (), "before": job, "fields": {}})


def audit_record(event: str, moment: Moment, job: Job, **facts: object) -> AuditRecord:
    said: AuditRecord = {"timestamp": moment.second, "event": event, "job_id": job.job_id}
    for name, value in facts.items():
        if value is not None:
            said[name] = value
    return said


def touched(job: Job, moment: Moment, fields: dict[str, Any]) -> Job:
    """The job with some fields changed now."""
    return Job.from_fields({**job.__dict__, "updated_at": max(moment.second, job.created_at), **fields})


def moved(
    job: Job, to: Status, moment: Moment, by: str, fields: Json,
    unfenced: bool = False, told: EventBody | None = None, lines: tuple[AuditRecord, ...] = (),
) -> Change:  # fmt: skip
    """The job in another status, with the line that says so and, at an end, the terminal event; behind the lines of
    what the same act did before. What else it changes are `fields`, which become the change's own."""
    check_move(job.job_id, job.status, to)
    now = moment.second
    if to is RUNNING:
        fields["claimed_at"] = fields["heard_at"] = now
    else:  # the claim is over
        fields["lease"] = fields["claimant"] = None
        fields["supervised"] = False
    if to.ended:
        fields["ended_at"], fields["last_seq"] = now, job.last_seq + 1
        fields["waiting_for"] = fields["due_at"] = None
    fields["status"] = to
    fields["updated_at"] = now if now > job.created_at else job.created_at  # the clock may have stepped back
    after, change = allocate(Job), allocate(Change)
    set_fields(after, {**job.__dict__, **fields})
    lines += (_status_changed(job, after, now, by, fields, unfenced),)
    if to.ended:
        lines += (_terminal_event(after, now, told),)
    set_fields(change, {"job": after, "lines": lines, "before": job, "fields": fields})
    return change


def _status_changed(job: Job, after: Job, now: str, by: str, fields: dict[str, Any], unfenced: bool) -> AuditRecord:
    said: AuditRecord = {
        "timestamp": now, "event": "status_changed", "job_id": job.job_id,
        "from": job.status, "to": after.status, "by": by,
    }  # fmt: skip
    if after.attempt:
        said["attempt"] = after.attempt
    if after.status is RUNNING and after.owner is not None:
        said["owner"] = after.owner
    if "losses" in fields:
        said["losses"] = fields["losses"]
    if fields.get("reason") is not None:
        said["reason"] = fields["reason"]
    if unfenced:
        said["unfenced"] = True
    return said


def published(change: Change, event: str, detail: str, moment: Moment, data: dict[str, Any] | None = None) -> Change:
    """The job with one more event: number and event are given in the same act, so there are no gaps."""
    told = touched(change.job, moment, {"last_seq": change.job.last_seq + 1})
    return change.then(told, _event(told, event, detail, moment.second, data))


def _event(job: Job, event: str, detail: str, now: str, data: dict[str, Any] | None) -> AuditRecord:
    """The line of the event that the job's last number was given to."""
    payload = event_payload(job.last_seq, job.job_id, event, now, detail, data)
    return {"timestamp": now, "event": "published", "job_id": job.job_id, "payload": payload}


def marked(change: Change, marker: str, upto: int, moment: Moment) -> Change:
    """Sequence numbers that were handed out without an event; one line stands for the whole run of them."""
    job = change.job
    said = audit_record(marker, moment, job, seq=job.last_seq + 1, upto=upto)
    return change.then(touched(job, moment, {"last_seq": upto}), said)


def _terminal_event(job: Job, now: str, told: EventBody | None) -> AuditRecord:
    event = "completed" if job.status is COMPLETED else "error"
    detail = (told.detail if told else "") or job.reason or job.status
    return _event(job, event, detail, now, {**told.data, "status": job.status} if told else {"status": job.status})
