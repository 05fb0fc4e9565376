"""The result of an act on one job: the record after it, and the lines for the journal and the audit log.

A line is `registered`, `status_changed`, `published` with the exact payload, or a marker (`reserved`, `imported`) for
sequence numbers without an event. A change without lines is a no-op.
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
    """The detail and data that a writer gives for the terminal event."""

    detail: str = ""
    data: dict[str, Any] = {}  # noqa: RUF012 - frozen by convention: nothing in mam writes into a record's dicts


class Change(Frozen):
    job: Job
    lines: tuple[AuditRecord, ...] = ()
    before: Job | None = None
    """The job before the act, if `fields` holds everything that the act set; a store then need not compare records."""
    fields: Json = {}  # noqa: RUF012

    def then(self, job: Job, *lines: AuditRecord) -> Change:
        return Change.from_fields({"job": job, "lines": self.lines + lines, "before": None, "fields": {}})


def unchanged(job: Job) -> Change:
    return Change.from_fields({"job": job, "lines": (), "before": job, "fields": {}})


def audit_record(event: str, moment: Moment, job: Job, **facts: object) -> AuditRecord:
    line: AuditRecord = {"timestamp": moment.second, "event": event, "job_id": job.job_id}
    for name, value in facts.items():
        if value is not None:
            line[name] = value
    return line


def touched(job: Job, moment: Moment, fields: dict[str, Any]) -> Job:
    """The job with some fields changed now."""
    return Job.from_fields({**job.__dict__, "updated_at": max(moment.second, job.created_at), **fields})


def moved(
    job: Job, to: Status, moment: Moment, by: str, fields: Json,
    unfenced: bool = False, body: EventBody | None = None, lines: tuple[AuditRecord, ...] = (),
) -> Change:  # fmt: skip
    """Moves the job to another status, and appends its line and, at an end, the terminal event to `lines`. `fields` are
    the other fields to set; the change keeps this dictionary."""
    check_move(job.job_id, job.status, to)
    now = moment.second
    if to is RUNNING:
        fields["claimed_at"] = fields["heard_at"] = now
    else:  # the claim ends
        fields["lease"] = fields["claimant"] = None
        fields["supervised"] = False
        if job.questions:
            lines += _withdraw_questions(job, now, fields)
    if to.ended:
        fields["ended_at"], fields["last_seq"] = now, job.last_seq + 1
        fields["waiting_for"] = fields["due_at"] = None
    fields["status"] = to
    fields["updated_at"] = now if now > job.created_at else job.created_at  # the clock may have stepped back
    after, change = Job.from_fields({**job.__dict__, **fields}), allocate(Change)
    lines += (_status_changed(job, after, now, by, fields, unfenced),)
    if to.ended:
        lines += (_terminal_event(after, now, body),)
    set_fields(change, {"job": after, "lines": lines, "before": job, "fields": fields})
    return change


def _withdraw_questions(job: Job, now: str, fields: Json) -> tuple[AuditRecord, ...]:
    """The attempt ends, and with it its open questions."""
    from mam.jobs.question import open_questions, withdrawn

    open_now = open_questions(job)
    if open_now:
        fields["questions"] = withdrawn(job, now)
    line = {"timestamp": now, "event": "withdrawn", "job_id": job.job_id}
    return tuple({**line, "question": one.number, "attempt": one.attempt} for one in open_now)


def _status_changed(job: Job, after: Job, now: str, by: str, fields: dict[str, Any], unfenced: bool) -> AuditRecord:
    line: AuditRecord = {
        "timestamp": now, "event": "status_changed", "job_id": job.job_id,
        "from": job.status, "to": after.status, "by": by,
    }  # fmt: skip
    if after.attempt:
        line["attempt"] = after.attempt
    if after.status is RUNNING and after.owner is not None:
        line["owner"] = after.owner
    if "losses" in fields:
        line["losses"] = fields["losses"]
    if fields.get("reason") is not None:
        line["reason"] = fields["reason"]
    if unfenced:
        line["unfenced"] = True
    return line


def published(change: Change, event: str, detail: str, moment: Moment, data: dict[str, Any] | None = None) -> Change:
    """The job with one more event. Number and event are stored in one act, so there are no gaps."""
    job = touched(change.job, moment, {"last_seq": change.job.last_seq + 1})
    return change.then(job, _event(job, event, detail, moment.second, data))


def _event(job: Job, event: str, detail: str, now: str, data: dict[str, Any] | None) -> AuditRecord:
    """The line of the event with the job's last sequence number."""
    payload = event_payload(job.last_seq, job.job_id, event, now, detail, data)
    return {"timestamp": now, "event": "published", "job_id": job.job_id, "payload": payload}


def marked(change: Change, marker: str, upto: int, moment: Moment) -> Change:
    """Marks sequence numbers without an event; one line covers the whole range."""
    job = change.job
    line = audit_record(marker, moment, job, seq=job.last_seq + 1, upto=upto)
    return change.then(touched(job, moment, {"last_seq": upto}), line)


def _terminal_event(job: Job, now: str, body: EventBody | None) -> AuditRecord:
    event = "completed" if job.status is COMPLETED else "error"
    detail = (body.detail if body else "") or job.reason or job.status
    return _event(job, event, detail, now, {**body.data, "status": job.status} if body else {"status": job.status})
