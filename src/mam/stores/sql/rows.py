"""A job as a row: what the database must see of it to choose and to order, and the record as text.

The text leaves out what no act has touched and is as a new record of schema_version 1 has it: most of a job is, and
every act writes it anew. For the same reason an act says what it set, and only that is compared.
"""

from __future__ import annotations

import json

from mam.errors import BadRecord
from mam.jobs.lease import Lease
from mam.jobs.record import NO_BROKER, Job, parse_job
from mam.jobs.status import Status
from mam.jobs.sweep import end_of_wait
from mam.stores.common import changed_fields, event_of
from mam.stores.sql.gate import blocked_at_first
from mam.writing import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from mam.jobs.change import Change
    from mam.jobs.record import Json

    T = TypeVar("T")

_ENDLESS = float("inf")


def _finite(text: str) -> float:
    """No store can write another, so a record that holds one is not mam's."""
    number = float(text)
    if not abs(number) < _ENDLESS:  # nor is NaN
        raise ValueError(text)
    return number


_decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
_read = _decoder.scan_once  # type: ignore[attr-defined] # the scanner in C, where there is one
"""What `json.loads` comes to, without its search for space around a text that mam wrote itself."""

_STATUSES = {status.value: status for status in Status}
_ABSENT = object()
TOPICS = "python/mqtt/jobs/"
_USUAL = {**Job.field_defaults, "broker": NO_BROKER, "expected_artifacts": []}
FIXED = Job.needed - _USUAL.keys() - {"prompt", "topic_prefix", "unknown"}
NEW = {**Job.all_fields, **_USUAL, "unknown": {}}


class Row:
    """One job as it stands there. `root` is the first of its chain of retries, None for a job that retries none."""

    __slots__ = ("fields", "job", "prompt", "record", "root")

    def __init__(self, record: str, prompt: str, root: str | None, store: str) -> None:
        """Rows are believed: mam looked at every field before it wrote them. `check` does not believe."""
        self.record = record
        self.prompt = prompt
        self.root = root
        self.fields = fields = loaded(record, store)
        try:
            whole = {**NEW, "topic_prefix": TOPICS + fields["job_id"], **fields, "prompt": prompt}
            if len(whole) == Job.width and whole["schema_version"] == 1 and fields.keys() >= FIXED:
                whole["status"] = _STATUSES[fields["status"]]
                if whole["lease"] is not None:
                    whole["lease"] = Lease(**whole["lease"])
                self.job = Job.of(whole)
                return
        except (KeyError, TypeError, ValueError):
            pass
        self.job = job_of(record, prompt, store)
        self.fields = _unusual(self.job.to_json())

    def check(self, store: str) -> None:
        job_of(self.record, self.prompt, store)

    def after(self, change: Change, encode: Callable[[object], str] = as_text) -> tuple[Row, Json]:
        """The row of the same job after an act, and the fields that it changed."""
        changed = changed_fields(self.job, change)
        fields = {**self.fields, **changed}
        fields.pop("prompt", None)
        return row_of(change.job, self.root, fields, encode(fields)), changed

    def ended(self, change: Change, encode: Callable[[object], T]) -> tuple[T, T, T]:
        """In JSON, what an end that stands alone writes: the record, and fields and lines of its entry."""
        changed = changed_fields(self.job, change)
        return encode({**self.fields, **changed}), encode(changed), encode(change.lines)


def new_row(job: Job, root: str | None) -> Row:
    fields = _unusual(job.to_json())
    return row_of(job, root, fields, as_text(fields))


def row_of(job: Job, root: str | None, fields: Json, record: str) -> Row:
    """Of a job whose text is known already."""
    row = Row.__new__(Row)
    row.job, row.root, row.prompt = job, root, job.prompt
    row.fields, row.record = fields, record
    return row


def job_values(row: Row) -> dict[str, Any]:
    """The columns of a row, by name."""
    job = row.job
    return {
        **changing_values(row),
        "label": job.agent_session,
        "agent": job.agent,
        "priority": job.priority,
        "created_at": job.created_at,
        "key": job.key,
        "retry_of": job.retry_of,
        "root": row.root,
        "parent": job.parent_id,
        "exclusive": job.exclusive,
        "prompt": row.prompt,
    }


def changing_values(row: Row) -> dict[str, Any]:
    """Those columns that an act may change, and what the job is found by."""
    job = row.job
    end = end_of_wait(job)
    boot_id = end.boot_id if end else ""
    return {
        "job_id": job.job_id,
        "number": job.number,
        "status": str(job.status),
        "blocked": blocked_at_first(job),
        "due_ms": end.wall_ms if end else None,
        "boot_id": boot_id or None,
        "boot_ms": end.boot_ms if end and boot_id else None,
        "claimant_agent": None if job.claimant is None else job.claimant["agent_id"],
        "record": row.record,
    }


def entry_of(fields: Json, change: Change, encode: Callable[[object], str] = as_text) -> dict[str, Any]:
    """A change as the journal keeps it."""
    return {"fields": encode(fields), "lines": encode(change.lines)}


def told(fields: Json, change: Change) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A change as the journal keeps it, and as an event log does that stands beside it."""
    events = [
        {"seq": event["seq"], "event": as_text(event)} for event in map(event_of, change.lines) if event is not None
    ]
    return entry_of(fields, change), events


def job_of(record: str, prompt: str, store: str) -> Job:
    """For whoever reads: every field is looked at. What is said of a bad one holds the row, so that it can be found."""
    fields = loaded(record, store)
    try:
        return parse_job({**fields, "prompt": prompt}, store)
    except BadRecord as bad:
        raise BadRecord(**bad.facts, row=record) from None


def _unusual(fields: Json) -> Json:
    usual = {**_USUAL, "prompt": fields["prompt"], "topic_prefix": TOPICS + fields["job_id"]}
    return {name: value for name, value in fields.items() if value != usual.get(name, _ABSENT)}


def loaded(record: str, store: str) -> Json:
    try:
        fields, end = _read(record, 0)
        if end != len(record):
            fields = _decoder.decode(record)
    except (StopIteration, ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise BadRecord(file=store, problem="one of its records is not a JSON object of finite numbers", row=record)
    return fields
