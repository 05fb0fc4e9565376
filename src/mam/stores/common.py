"""Functions that several stores share."""

from __future__ import annotations

import os

from mam.errors import Refused, UnknownJob
from mam.jobs import acts
from mam.jobs.change import audit_record
from mam.jobs.question import count_open
from mam.jobs.status import RUNNING
from mam.jobs.sweep import next_deadline
from mam.stores.port import QueuedJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from mam.jobs.change import AuditRecord, Change
    from mam.jobs.dependency import Dependencies
    from mam.jobs.record import Job, Json
    from mam.stores.port import ClaimRequest, JobWithEvents, Query
    from mam.util.clock import Moment

    T = TypeVar("T")


def changed_fields(before: Job | None, change: Change) -> Json:
    """The fields that an act set, for the journal: a prompt of a megabyte is logged once, not at every step. A change
    that does not name its fields is compared with the job before it."""
    job = change.job
    if before is None:
        return job.to_json()
    if change.before is before:
        changed = {name: job.__dict__[name] for name in change.fields}
    else:
        old, new = before.__dict__, job.__dict__
        changed = {name: new[name] for name in new if new[name] != old[name]}
    if "unknown" in changed:
        del changed["unknown"]
        changed.update((name, value) for name, value in job.unknown.items() if not _has(before.unknown, name, value))
    if changed.get("lease") is not None:
        changed["lease"] = {**changed["lease"].__dict__}
    return changed


def _has(fields: Json, name: str, value: object) -> bool:
    return name in fields and bool(fields[name] == value)


def event_in_line(audit_record: AuditRecord) -> AuditRecord | None:
    """The event in a journal line, if it has one: a payload, or the marker of sequence numbers without a payload."""
    if audit_record["event"] == "published":
        payload: AuditRecord = audit_record["payload"]
        return payload
    if audit_record["event"] in ("reserved", "imported"):
        return {"marker": audit_record["event"], "seq": audit_record["seq"], "upto": audit_record["upto"]}
    return None


def import_lines(kept: JobWithEvents, moment: Moment) -> tuple[AuditRecord, ...]:
    """The lines of the journal entry for a job imported from another registry: all its events are in them."""
    return (audit_record("migrated", moment, kept.job, status=kept.job.status), *event_lines(kept))


def event_lines(kept: JobWithEvents) -> tuple[AuditRecord, ...]:
    """The journal lines that carry these events."""
    return tuple(_line_of(kept.job, event) for event in kept.events)


def _line_of(job: Job, event: AuditRecord) -> AuditRecord:
    if "marker" in event:
        line = {"timestamp": job.updated_at, "event": event["marker"], "job_id": job.job_id}
        return {**line, "seq": event["seq"], "upto": event["upto"]}
    line = {"timestamp": event.get("timestamp", job.updated_at), "event": "published", "job_id": job.job_id}
    return {**line, "payload": event}


def archived_line(job_id: str, moment: Moment) -> AuditRecord:
    return {"timestamp": moment.second, "event": "archived", "job_id": job_id}


def due_ms(job: Job) -> int:
    """When the job's lease or wait ends, on the wall clock; only for sorting jobs that are due."""
    end = next_deadline(job)
    return 0 if end is None else end.wall_ms


def matches(query: Query, job: Job) -> bool:
    return (
        (query.statuses is None or job.status in query.statuses)
        and (query.label is None or job.agent_session == query.label)
        and (query.since is None or job.created_at >= query.since)
        and (not query.asking or count_open(job) > 0)
        and (query.below is None or job.number < query.below)
    )


def queued_job(job: Job) -> QueuedJob:
    return QueuedJob(
        job_id=job.job_id, label=job.agent_session, agent=job.agent, priority=job.priority, number=job.number
    )  # fmt: skip


def apply_claim(job: Job, request: ClaimRequest, moment: Moment) -> Change:
    """The claim that a request makes on a job."""
    claimant = None
    if request.agent_id is not None:
        claimant = {"agent_id": request.agent_id, "generation_id": request.generation_id}
    return acts.claim(
        job, moment, request.owner, request.lease_seconds, "worker" if request.supervised else "pick",
        claim_id=request.claim_id or new_claim_id(), supervised=request.supervised, claimant=claimant,
    )  # fmt: skip


def new_claim_id() -> str:
    return os.urandom(8).hex()


def check_dependencies(
    draft: Job, needed: Dependencies, store: str, newest: Callable[[str], Job | None]
) -> Dependencies:
    """Checks that every job that a new one depends on exists, and that there is no cycle."""
    from mam.jobs.dependency import check_no_cycle

    for job_id, found in needed.items():
        if found is None:
            raise UnknownJob(job=job_id, store=store)
    check_no_cycle(draft, newest)
    return needed


def check_exclusive(before: Job | None, job: Job, holder: Callable[[str], str | None]) -> None:
    """Refuses a second running job of an exclusive key. Claims have skipped keys in use before."""
    if job.exclusive is None or job.status is not RUNNING or (before is not None and before.status is RUNNING):
        return
    other = holder(job.exclusive)
    if other is not None and other != job.job_id:
        raise Refused(why=f"Job {job.job_id} cannot run now: job {other} runs under the key {job.exclusive!r}.")


def chunks(items: Sequence[T], size: int = 256) -> Iterator[Sequence[T]]:
    """The items in parts, one for each transaction: other processes get the lock in between."""
    return (items[begin : begin + size] for begin in range(0, len(items), size))


def soonest(*seconds: float | None) -> float | None:
    known = [one for one in seconds if one is not None]
    return min(known) if known else None
