"""Converts a job to a row and back. Fields that are queried, ordered by, fenced or shown have columns; the JSON column
`extra` holds the rest."""

from __future__ import annotations

import json

from mam.errors import BadRecord
from mam.jobs.continuation import bound_host
from mam.jobs.lease import Lease
from mam.jobs.question import count_open
from mam.jobs.record import NO_BROKER, Job, parse_job
from mam.jobs.status import PENDING, Status
from mam.jobs.sweep import next_deadline
from mam.util.encoding import to_json_text
from mam.util.frozen import Frozen, freeze_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.jobs.record import Json
    from mam.util.clock import Moment

FREE, BLOCKED, UNREADABLE = 0, 1, 2

SAME = (
    "job_id", "created_at", "updated_at", "agent", "timeout_sec", "idle_timeout_sec", "last_seq", "number", "priority",
    "attempt", "claim_id", "owner", "claimed_at", "heard_at", "ended_at", "ended_attempt", "losses", "max_losses",
    "retries", "max_retries", "waiting_for", "due_at", "reason", "result", "key", "retry_of", "continues", "workdir",
    "origin_host", "exclusive", "parent_id",
)  # fmt: skip
"""Fields whose column has their name and holds their value."""

JSON = ("expected_artifacts", "said", "checks", "run")
LEASE = ("lease_expires_at", "lease_seconds", "lease_boot_id", "lease_boot_ms")

COLUMNS = (
    *SAME, *JSON, *LEASE, "status", "label", "supervised", "checked", "claimant_agent", "claimant_generation", "extra",
    "version", "root", "awaited", "prompt",
)  # fmt: skip
"""The columns of every query that reads jobs, in this order: `{columns}` in the .sql files."""

_IN_COLUMNS = frozenset(
    (*SAME, *JSON, "status", "agent_session", "supervised", "checked", "claimant", "lease", "prompt")
)
_USUAL: Json = {**Job.field_defaults, "broker": NO_BROKER}
_NEW: Json = {**Job.all_fields, **_USUAL, "unknown": {}}
freeze_fields(_NEW, Job.frozen_json)
_STATUSES = {status.value: status for status in Status}
_TOPICS = "python/mqtt/jobs/"


class Row(Frozen):
    """One job as it is in the database."""

    job: Job
    version: int
    root: str | None
    """The first job of its chain of retries; None for a job that retries none."""
    awaited: bool
    """Whether other jobs depend on it."""


def parse_row(found: Sequence[Any], store: str) -> Row:
    """Raises BadRecord with the number of the row when mam cannot read it."""
    values = dict(zip(COLUMNS, found, strict=True))
    try:
        job = _job_of(values)
    except BadRecord as bad:
        raise BadRecord(file=store, problem=bad.facts["problem"], row=values["number"]) from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadRecord(file=store, problem=f"its row cannot be read ({error})", row=values["number"]) from None
    return Row(job=job, version=values["version"], root=values["root"], awaited=bool(values["awaited"]))


def _job_of(values: Json) -> Job:
    fields = {name: values[name] for name in SAME}
    fields["agent_session"] = values["label"]
    fields["status"] = _STATUSES[values["status"]]
    fields["supervised"] = bool(values["supervised"])
    fields["checked"] = None if values["checked"] is None else bool(values["checked"])
    fields["prompt"] = values["prompt"]
    fields["topic_prefix"] = _TOPICS + values["job_id"]
    for name in JSON:
        text = values[name]
        fields[name] = None if text is None else [] if text == "[]" else _checked(name, json.loads(text))
    if values["lease_expires_at"] is not None:
        fields["lease"] = _lease_of(values)
    if values["claimant_agent"] is not None:
        fields["claimant"] = {"agent_id": values["claimant_agent"], "generation_id": values["claimant_generation"]}
    if values["extra"] == "{}":
        return Job.from_fields({**_NEW, **fields})
    # Another program may have written `extra`, so every field is checked.
    lease = fields.pop("lease", None)
    whole = parse_job({**fields, **json.loads(values["extra"])}, "")
    return whole if lease is None else whole.replace(lease=lease)


def _checked(name: str, value: object) -> object:
    if type(value) is not (list if name == "expected_artifacts" else dict):
        raise TypeError(f"{name} is {type(value).__name__}")
    return value


def _lease_of(values: Json) -> Lease:
    return Lease(
        expires_at=values["lease_expires_at"],
        seconds=_number(values["lease_seconds"]),
        boot_id=values["lease_boot_id"] or "",
        boot_ms=values["lease_boot_ms"] or 0,
    )


def _number(seconds: float) -> float:
    """The column returns 60 as 60.0; records show the integer."""
    return int(seconds) if seconds == int(seconds) else seconds


def column_values(job: Job, moment: Moment) -> Json:
    """The columns of a job, by name."""
    fields = job.__dict__
    values = {name: fields[name] for name in SAME}
    values["status"], values["label"] = job.status.value, job.agent_session
    values["supervised"], values["checked"] = job.supervised, job.checked
    for name in JSON:
        values[name] = None if fields[name] is None else to_json_text(fields[name])
    lease, claimant = job.lease, job.claimant
    values["lease_expires_at"] = None if lease is None else lease.expires_at
    values["lease_seconds"] = None if lease is None else lease.seconds
    values["lease_boot_id"] = None if lease is None else lease.boot_id
    values["lease_boot_ms"] = None if lease is None else lease.boot_ms
    values["claimant_agent"] = None if claimant is None else claimant["agent_id"]
    values["claimant_generation"] = None if claimant is None else claimant["generation_id"]
    values["due_boot"], values["due_ms"] = _due(job, moment)
    values["host"] = bound_host(job)
    # A job with an exclusive key is blocked until `Blocking.rebalance` has compared it with the others of its key.
    values["blocked"] = BLOCKED if job.exclusive is not None and job.status is PENDING else FREE
    values["asking"] = count_open(job) if job.questions else 0
    values["extra"] = to_json_text(_extra(job)) if _has_extra(job) else "{}"
    return values


def _due(job: Job, moment: Moment) -> tuple[str, int | None]:
    """When the lease or the wait of a job ends, and on which clock: the wall clock for a lease of another boot."""
    end = next_deadline(job)
    if end is None:
        return "", None
    if end.boot_id and end.boot_id == moment.boot_id:
        return end.boot_id, end.boot_ms
    return "", end.wall_ms


_EXTRA = tuple(name for name in Job.field_names if name not in _IN_COLUMNS and name not in ("unknown", "topic_prefix"))


def _has_extra(job: Job) -> bool:
    fields = job.__dict__
    return (
        bool(job.unknown)
        or job.topic_prefix != _TOPICS + job.job_id
        or any(fields[name] != _USUAL[name] for name in _EXTRA)
    )


def _extra(job: Job) -> Json:
    """Fields without a column whose value is not the default."""
    fields = job.__dict__
    extra = {name: fields[name] for name in _EXTRA if fields[name] != _USUAL[name]}
    if job.topic_prefix != _TOPICS + job.job_id:
        extra["topic_prefix"] = job.topic_prefix
    return {**job.unknown, **extra}
