"""What a database of many ended jobs does not repeat, and how it is read back.

An entry of a registration and a record of the archive lack the values that most jobs have. The lines of an archived job
say 0 in place of its id, which their row has. Their events lack what the line says.
"""

from __future__ import annotations

from mam.events.topic import default_prefix
from mam.jobs.record import NO_BROKER, Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.jobs.change import AuditRecord
    from mam.jobs.record import Json

_EMPTY: Json = {name: value for name, value in Job.field_defaults.items() if not value}
_USUAL: Json = {
    "schema_version": 1, "timeout_sec": 3600, "idle_timeout_sec": 120, "max_losses": 3, "max_retries": 3,
    "on_dependency_failure": "hold", "workspace": "workdir", "permissions": "edit", "on_idle": "show", "may_ask": True,
    "broker": NO_BROKER,
}  # fmt: skip
"""Never change this: the databases that exist were written with it, whatever the defaults of a new job are."""

_NOTHING = object()
_SHORT_ID = 0
_SHORT_PAYLOAD = ("seq", "event", "detail", "data")


def short_record(job: Job) -> Json:
    """The record without the values that most jobs have."""
    usual = {**_EMPTY, **_USUAL, "topic_prefix": default_prefix(job.job_id), "expected_artifacts": []}
    return {name: value for name, value in job.to_json().items() if usual.get(name, _NOTHING) != value}


def whole_record(fields: Json) -> Json:
    lists: Json = {"expected_artifacts": [], **{name: [] for name, value in _EMPTY.items() if value == []}}
    usual = {**_EMPTY, **lists, **_USUAL, "broker": dict(NO_BROKER), "topic_prefix": default_prefix(fields["job_id"])}
    return {**usual, **fields}


def entry_fields(fields: Json) -> Json:
    """The fields of an entry as its act set them. Only a registration sets the id. Earlier versions stored all of its
    fields, `auth_token` too."""
    return whole_record(fields) if "job_id" in fields and "auth_token" not in fields else fields


def short_lines(lines: Sequence[AuditRecord]) -> list[AuditRecord]:
    return [_short_line(line) for line in lines]


def _short_line(line: AuditRecord) -> AuditRecord:
    payload, job_id = line.get("payload"), line["job_id"]
    if job_id == _SHORT_ID or not isinstance(payload, dict):
        return {**line, "job_id": _SHORT_ID}
    short = {name: payload[name] for name in _SHORT_PAYLOAD if name in payload}
    whole = _whole_payload(line, short, job_id)
    is_usual = tuple(payload) == tuple(whole) and payload == whole
    return {**line, "job_id": _SHORT_ID, "payload": short} if is_usual else line


def whole_lines(lines: list[AuditRecord], job_id: str) -> list[AuditRecord]:
    """The lines of an entry as they were written."""
    return [_whole_line(line, job_id) if line["job_id"] == _SHORT_ID else line for line in lines]


def _whole_line(line: AuditRecord, job_id: str) -> AuditRecord:
    payload = line.get("payload")
    if not isinstance(payload, dict):
        return {**line, "job_id": job_id}
    return {**line, "job_id": job_id, "payload": _whole_payload(line, payload, job_id)}


def _whole_payload(line: AuditRecord, short: Json, job_id: str) -> Json:
    """In the order of `mam.events.event.event_payload`. Earlier versions left out only the id."""
    whole = {"schema_version": 1, "seq": 0, "job_id": "", "event": "", "timestamp": line.get("timestamp")}
    return {**whole, **short, "job_id": job_id}
