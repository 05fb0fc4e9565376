"""The acts of holders, users and scripts. Each act is a pure function from a job to a change.

An act that carries an attempt checks the fence first: the job must be running under exactly that attempt and, if the
writer gives one, that claim id. A store calls an act inside its lock or transaction, so the check and the write are
atomic.
"""

from __future__ import annotations

from mam.errors import ClaimLost, IllegalMove, Refused
from mam.events.event import check_data, check_event
from mam.jobs.change import Change, EventBody, audit_record, marked, moved, published, touched, unchanged
from mam.jobs.lease import default_lease_seconds, new_lease
from mam.jobs.record import DEPENDENCY, Job
from mam.jobs.status import CANCELLED, COMPLETED, ERROR, PENDING, RUNNING, WAITING, Status
from mam.util.clock import Moment, iso_milli, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypedDict

    from mam.jobs.change import AuditRecord
    from mam.jobs.dependency import Dependencies
    from mam.jobs.record import Json

    class Fence(TypedDict):
        """The claim under which a writer writes; both are None for a writer that holds none."""

        attempt: int | None
        claim_id: str | None


MANUAL = "manual"
"""The owner of a claim that a status written by hand or by an old script implies."""


def register(draft: Job, number: int, moment: Moment, needed: Dependencies | None = None) -> Change:
    """A draft becomes a job: numbered, dated, and pending, or waiting for its start time or its dependencies."""
    waits = draft.due_at is not None and parse_time(draft.due_at) > moment.wall_ms
    job = draft.replace(
        number=number,
        created_at=moment.second,
        updated_at=moment.second,
        status=WAITING if waits else PENDING,
        waiting_for="time" if waits else None,
        due_at=draft.due_at if waits else None,
    )
    names = {"retry_of": job.retry_of, "continues": job.continues}
    line = audit_record("registered", moment, job, status=job.status, **names)
    change = Change(job=job, lines=(line,))
    if not job.after:
        return change
    from mam.jobs.dependency import hold_for_dependencies

    return hold_for_dependencies(change, needed or {}, moment)


def claim(
    job: Job, moment: Moment, owner: str, lease_seconds: float | None, by: str = "pick", *,
    claim_id: str | None = None, unfenced: bool = False, supervised: bool = False, claimant: Json | None = None,
) -> Change:  # fmt: skip
    """Begins the next attempt. It always sets the same fields, because the SQL stores do the same in one statement."""
    fields = {
        "attempt": job.attempt + 1, "claim_id": claim_id, "owner": owner,
        "lease": new_lease(default_lease_seconds(job.timeout_sec) if lease_seconds is None else lease_seconds, moment),
        "supervised": supervised, "claimant": claimant,
        "reason": None, "said": None, "result": None, "checked": None,
    }  # fmt: skip
    return moved(job, RUNNING, moment, by, fields, unfenced)


def heartbeat(
    job: Job, moment: Moment, *,
    attempt: int | None, lease_seconds: float | None, claim_id: str | None = None, heard: bool = True,
) -> Change:  # fmt: skip
    """Renews the lease. `heard` is false when the worker renews it although its agent gave no sign of life."""
    check_fence(job, attempt, claim_id)
    if job.status is not RUNNING:
        raise Refused(why=f"Job {job.job_id} is {job.status}; only a running job has a lease to renew.")
    lease = new_lease(_renewal_seconds(job, lease_seconds), moment)
    line = audit_record("renewed", moment, job, attempt=job.attempt, unfenced=_unfenced(attempt))
    signs = {"heard_at": moment.second} if heard else {}
    return Change(job=touched(job, moment, {"lease": lease, **signs}), lines=(line,))


class ArtifactCheckNeeded(Exception):
    """The artifacts of this job must be checked before it completes. The check takes long, so it runs without the
    store's lock; most jobs have no artifacts."""

    def __init__(self, job: Job) -> None:
        self.job = job


def complete(
    job: Job, moment: Moment, *,
    attempt: int | None, result: str | None, claim_id: str | None = None, new_claim: str | None = None,
    checked: bool | None = None, body: EventBody | None = None, artifacts_unchecked: bool = False,
) -> Change:  # fmt: skip
    """Completes the job. On a pending job this is a manual claim (with the id `new_claim`) and its completion in one
    act. With `artifacts_unchecked` the expected artifacts have not been checked yet."""
    if is_repeated_end(job, COMPLETED, attempt, claim_id):
        return unchanged(job)
    if job.supervised:
        return report_outcome(job, moment, attempt, status=COMPLETED, result=result, body=body)
    lines: tuple[AuditRecord, ...] = ()
    if job.status is PENDING:
        job, lines = _claim_by_hand(job, moment, new_claim)
    checked = bool(job.expected_artifacts) if checked is None else checked
    end = _end_fields(job, attempt, result=result, checked=checked)
    change = moved(job, COMPLETED, moment, "complete", end, attempt is None, body, lines)
    if artifacts_unchecked and job.expected_artifacts:
        raise ArtifactCheckNeeded(job)  # last, so that a writer without the claim gets ClaimLost
    return change


def fail(
    job: Job, moment: Moment, *,
    attempt: int | None, reason: str, claim_id: str | None = None, result: str | None = None,
    body: EventBody | None = None,
) -> Change:  # fmt: skip
    """Ends the job in error."""
    if is_repeated_end(job, ERROR, attempt, claim_id):
        return unchanged(job)
    if job.supervised:
        return report_outcome(job, moment, attempt, status=ERROR, reason=reason, body=body)
    end = _end_fields(job, attempt, reason=reason, result=result)
    return moved(job, ERROR, moment, "fail", end, unfenced=attempt is None, body=body)


def _end_fields(
    job: Job, attempt: int | None, *, result: str | None, reason: str | None = None, checked: bool | None = None
) -> Json:
    """The fields that an end sets: always the same, because the SQL stores do the same in one statement."""
    return {
        "ended_attempt": attempt, "result": result, "reason": reason, "checked": checked,
        "run": job.run, "checks": job.checks,
    }  # fmt: skip


def fail_retryable(
    job: Job, moment: Moment, *,
    attempt: int | None, reason: str, delay_seconds: float, claim_id: str | None = None, new_claim: str | None = None,
) -> Change:  # fmt: skip
    """Ends the attempt; the job waits for a retry, or ends in error when `max_retries` is reached."""
    if is_repeated_end(job, ERROR, attempt, claim_id):
        return unchanged(job)
    if job.supervised:
        return report_outcome(job, moment, attempt, status=ERROR, reason=reason, retryable=True)
    lines: tuple[AuditRecord, ...] = ()
    if job.status is PENDING:
        job, lines = _claim_by_hand(job, moment, new_claim)
    unfenced = attempt is None
    if job.retries >= job.max_retries:
        tries = "1 retry" if job.retries == 1 else f"{job.retries} retries"
        final = f"{reason} (gave up after {tries})" if job.retries else reason
        end = {"ended_attempt": attempt, "reason": final}
        return moved(job, ERROR, moment, "fail", end, unfenced=unfenced, lines=lines)
    wait = {
        "owner": None, "reason": reason, "retries": job.retries + 1, "waiting_for": "retry",
        "due_at": iso_milli(moment.wall_ms + round(delay_seconds * 1000)),
    }  # fmt: skip
    return moved(job, WAITING, moment, "fail", wait, unfenced=unfenced, lines=lines)


def release(
    job: Job, moment: Moment, *, attempt: int | None, claim_id: str | None = None, reason: str | None = None
) -> Change:
    """The holder returns the job unfinished. This counts as neither a loss nor a retry."""
    check_fence(job, attempt, claim_id)
    if job.status is not RUNNING:
        return _same_or_illegal(job, PENDING)
    return moved(job, PENDING, moment, "release", {"owner": None, "reason": reason}, unfenced=attempt is None)


def cancel(job: Job, moment: Moment, *, attempt: int | None, reason: str | None, claim_id: str | None = None) -> Change:
    """Cancels the job, even while a worker holds it."""
    if is_repeated_end(job, CANCELLED, attempt, claim_id):
        return unchanged(job)
    # Anyone may cancel, so a cancel without an attempt is not marked as unfenced.
    return moved(job, CANCELLED, moment, "cancel", {"ended_attempt": attempt, "reason": reason or "cancelled"})


def mark_seen(job: Job, moment: Moment, *, by: str) -> Change:
    """Notes who looked at the outcome. The work has not changed, so `updated_at` stays."""
    if not job.status.ended:
        raise Refused(why=f"Job {job.job_id} is {job.status}; only the outcome of an ended job can be seen.")
    if (job.seen or {}).get("by") == by:
        return unchanged(job)
    line = audit_record("seen", moment, job, by=by)
    return Change(job=job.replace(seen={"by": by, "at": moment.second}), lines=(line,))


def mark_applied(job: Job, moment: Moment, *, by: str, facts: Mapping[str, str]) -> Change:
    """Notes that a person applied the changes, and where. A repeat of the last note changes nothing."""
    known = job.applied or {}
    if known.get("by") == by and all(known.get(name) == fact for name, fact in facts.items()):
        return unchanged(job)
    line = audit_record("applied", moment, job, by=by, **facts)
    return Change(job=job.replace(applied={"by": by, "at": moment.second, **facts}), lines=(line,))


def set_status(
    job: Job, moment: Moment, *, to: Status, attempt: int | None,
    claim_id: str | None = None, new_claim: str | None = None,
) -> Change:  # fmt: skip
    """M's plain `status --set`: calls the act that leads to the status."""
    if job.status is to and attempt is None:
        return unchanged(job)
    fence: Fence = {"attempt": attempt, "claim_id": claim_id}
    match to:
        case Status.RUNNING:
            return _set_running(job, moment, attempt, claim_id, new_claim)
        case Status.COMPLETED:
            return complete(job, moment, **fence, new_claim=new_claim, result=job.result, checked=False)
        case Status.ERROR:
            return fail(job, moment, **fence, reason=job.reason or "set by hand", result=job.result)
        case Status.CANCELLED:
            return cancel(job, moment, **fence, reason=None)
        case Status.PENDING:
            return _set_pending(job, moment, attempt, claim_id)
        case Status.WAITING:
            check_fence(job, attempt, claim_id)
            why = "waiting is never set by hand; register with --at, or fail --retryable"
            raise Refused(why=f"Job {job.job_id} is {job.status}; {why}.")


def publish(
    job: Job, moment: Moment, *,
    event: str, detail: str, data: Mapping[str, Any], attempt: int | None,
    claim_id: str | None = None, new_claim: str | None = None, artifacts_unchecked: bool = False,
) -> Change:  # fmt: skip
    """Stores an event. `started`, `completed` and `error` change the status; the others only renew the lease."""
    check_event(event)
    body = EventBody(detail=detail, data=check_data(dict(data)))
    if event == "completed":
        return complete(
            job, moment, attempt=attempt, claim_id=claim_id, new_claim=new_claim, result=job.result, body=body,
            artifacts_unchecked=artifacts_unchecked,
        )  # fmt: skip
    if event == "error":
        return fail(
            job, moment, attempt=attempt, claim_id=claim_id, reason=detail or "error", result=job.result, body=body
        )
    check_fence(job, attempt, claim_id)
    if job.status.ended:
        raise Refused(why=f"Job {job.job_id} is {job.status} and takes no event.")
    change = unchanged(job)
    if event == "started" and job.status is not RUNNING:
        change = claim(job, moment, owner=MANUAL, lease_seconds=None, by="publish", claim_id=new_claim, unfenced=True)
    change = published(change, event, detail or event, moment, dict(data))
    return change.then(_renewed_by_event(change.job, moment))


def reserve_seq(job: Job, moment: Moment) -> Change:
    """M's bare `next_seq`: reserves a number, with a marker that no event carries it."""
    return marked(unchanged(job), "reserved", job.last_seq + 1, moment)


def report_outcome(
    job: Job, moment: Moment, attempt: int | None, *, body: EventBody | None = None, **fields: object
) -> Change:
    """Stores the outcome that the agent reports. A job under a worker does not end yet: the worker verifies first."""
    outcome = {name: word for name, word in fields.items() if word is not None}
    if body is not None:
        outcome.update({"detail": body.detail} if body.detail else {}, **({"data": body.data} if body.data else {}))
    heard = _renewed_by_event(touched(job, moment, {"said": {"at": moment.second, **outcome}}), moment)
    return Change(job=heard, lines=(audit_record("said", moment, job, attempt=attempt, status=fields["status"]),))


def check_fence(job: Job, attempt: int | None, claim_id: str | None = None) -> None:
    """Raises ClaimLost unless the job runs under exactly that attempt and, if the writer gives one, that claim id."""
    if attempt is None or (job.status is RUNNING and job.attempt == attempt and _is_claim(job, claim_id)):
        return
    raise ClaimLost(job=job.job_id, attempt=attempt, why=_why_lost(job, attempt, claim_id))


def check_latest_claim(job: Job, attempt: int, claim_id: str | None) -> None:
    """Raises ClaimLost when a newer claim has taken the job. Unlike `check_fence`, it passes after the job has left the
    attempt: what an ended attempt leaves behind takes nothing from anyone."""
    if job.attempt != attempt or not _is_claim(job, claim_id):
        raise ClaimLost(job=job.job_id, attempt=attempt, why=_why_lost(job, attempt, claim_id))


def _is_claim(job: Job, claim_id: str | None) -> bool:
    """Claims of an older version have no id; the attempt alone fences them."""
    return claim_id is None or job.claim_id is None or claim_id == job.claim_id


def _why_lost(job: Job, attempt: int, claim_id: str | None) -> str:
    if attempt > job.attempt:
        return f"there was no such attempt, the latest is {job.attempt}"
    if job.attempt > attempt:
        return f"attempt {job.attempt} has taken over"
    if job.status is RUNNING:
        return f"another claim holds attempt {attempt}"
    if job.ended_attempt == attempt and not _is_claim(job, claim_id):
        return f"another claim of attempt {attempt} has ended the job ({job.status})"
    return f"the job is {job.status}"


def is_repeated_end(job: Job, to: Status, attempt: int | None, claim_id: str | None) -> bool:
    """Whether this write repeats the one that ended the job. Otherwise the fence is checked. Without an attempt the
    status alone decides; with one, only the attempt that ended the job may repeat its write."""
    if job.status is to and (attempt is None or (job.ended_attempt == attempt and _is_claim(job, claim_id))):
        return True
    check_fence(job, attempt, claim_id)
    return False


def _claim_by_hand(job: Job, moment: Moment, claim_id: str | None) -> tuple[Job, tuple[AuditRecord, ...]]:
    """Ending an unclaimed job is a claim and an end, so that every transition in its history is legal."""
    change = claim(job, moment, owner=MANUAL, lease_seconds=None, by=MANUAL, claim_id=claim_id, unfenced=True)
    return change.job, change.lines


def _set_running(job: Job, moment: Moment, attempt: int | None, claim_id: str | None, new_claim: str | None) -> Change:
    if attempt is not None:
        return heartbeat(job, moment, attempt=attempt, claim_id=claim_id, lease_seconds=None)
    return claim(job, moment, owner=MANUAL, lease_seconds=None, by="status", claim_id=new_claim, unfenced=True)


def _set_pending(job: Job, moment: Moment, attempt: int | None, claim_id: str | None) -> Change:
    if job.status is WAITING and attempt is None:
        if job.continues is not None and job.waiting_for == DEPENDENCY:
            why = "it continues a job that has not ended; `mam cancel` that one, or wait"
            raise Refused(why=f"Job {job.job_id} is waiting: {why}.")
        return moved(job, PENDING, moment, "status", {"waiting_for": None, "due_at": None})
    return release(job, moment, attempt=attempt, claim_id=claim_id)


def _same_or_illegal(job: Job, to: Status) -> Change:
    if job.status is to:
        return unchanged(job)
    raise IllegalMove(job=job.job_id, status=job.status, to=to)


def _renewed_by_event(job: Job, moment: Moment) -> Job:
    """Every accepted event renews the lease, and never shortens it."""
    if job.status is not RUNNING or job.lease is None:
        return job
    fresh = new_lease(_renewal_seconds(job, None), moment)
    longer = fresh if fresh.left_ms(moment) > job.lease.left_ms(moment) else job.lease
    return job.replace(lease=longer, heard_at=moment.second)


def _renewal_seconds(job: Job, asked: float | None) -> float:
    """The requested length, else the length of the current lease: a worker's short lease stays short."""
    if asked is not None:
        return asked
    return job.lease.seconds if job.lease and job.lease.seconds else default_lease_seconds(job.timeout_sec)


def _unfenced(attempt: int | None) -> bool | None:
    return True if attempt is None else None
