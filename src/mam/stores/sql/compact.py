"""What a database of many ended jobs does not repeat, and how it is read back.

An entry of a registration and a record of the archive lack the values that most jobs have. The lines of a summary say 0
in place of the job's id, which their row has.
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
    return [_with_id(line, line["job_id"], _SHORT_ID) for line in lines]


def whole_lines(lines: list[AuditRecord], job_id: str) -> list[AuditRecord]:
    """The lines of an entry as they were written."""
    if lines[0]["job_id"] != _SHORT_ID:
        return lines
    return [_with_id(line, _SHORT_ID, job_id) for line in lines]


def _with_id(line: AuditRecord, old: str | int, new: str | int) -> AuditRecord:
    """In place of the old id, also in the event of the line."""
    payload = line.get("payload")
    if isinstance(payload, dict) and payload.get("job_id") == old:
        return {**line, "job_id": new, "payload": {**payload, "job_id": new}}
    return {**line, "job_id": new}
