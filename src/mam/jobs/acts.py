"""What a holder, a user or a script may do to a job. Each act is a pure function from a job to a change.

The fence comes first in every act that carries an attempt: the job must be running under exactly that attempt and, if
the writer gives it, that claim id. The store calls these inside its lock or transaction, so the test and the write
cannot be separated.
"""

from __future__ import annotations

from mam.errors import ClaimLost, IllegalMove, Refused
from mam.events.event import check_data, check_event
from mam.jobs.change import Change, EventBody, audit_record, marked, moved, published, touched, unchanged
from mam.jobs.lease import default_lease_seconds, new_lease
from mam.jobs.record import Job
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
"""The owner of a claim that nobody made: a status written by hand or by an old script."""


def register(draft: Job, number: int, moment: Moment, needed: Dependencies | None = None) -> Change:
    """A draft becomes a job: numbered, dated, pending or waiting for its start time or for others to end."""
    waits = draft.due_at is not None and parse_time(draft.due_at) > moment.wall_ms
    job = draft.replace(
        number=number,
        created_at=moment.second,
        updated_at=moment.second,
        status=WAITING if waits else PENDING,
        waiting_for="time" if waits else None,
        due_at=draft.due_at if waits else None,
    )
    said = audit_record("registered", moment, job, status=job.status, retry_of=job.retry_of)
    change = Change(job=job, lines=(said,))
    if not job.after:
        return change
    from mam.jobs.dependency import hold_for_dependencies

    return hold_for_dependencies(change, needed or {}, moment)


def claim(
    job: Job, moment: Moment, owner: str, lease_seconds: float | None, by: str = "pick", *,
    claim_id: str | None = None, unfenced: bool = False, supervised: bool = False, claimant: Json | None = None,
) -> Change:  # fmt: skip
    """The next attempt begins. It always sets the same fields: the SQL stores do the same in one statement."""
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
    """The holder is alive: its lease starts anew. A worker that has not `heard` its agent renews all the same."""
    check_fence(job, attempt, claim_id)
    if job.status is not RUNNING:
        raise Refused(why=f"Job {job.job_id} is {job.status}; only a running job has a lease to renew.")
    lease = new_lease(_renewal_seconds(job, lease_seconds), moment)
    said = audit_record("renewed", moment, job, attempt=job.attempt, unfenced=_unfenced(attempt))
    signs = {"heard_at": moment.second} if heard else {}
    return Change(job=touched(job, moment, {"lease": lease, **signs}), lines=(said,))


class ArtifactCheckNeeded(Exception):
    """Whether the artifacts of this job are there has to be looked at before it is completed. That takes long, so it is
    done without the store's lock; most jobs have nothing to look at."""

    def __init__(self, job: Job) -> None:
        self.job = job


def complete(
    job: Job, moment: Moment, *,
    attempt: int | None, result: str | None, claim_id: str | None = None, new_claim: str | None = None,
    checked: bool | None = None, told: EventBody | None = None, artifacts_unchecked: bool = False,
) -> Change:  # fmt: skip
    """The work is done. On a pending job this is a manual claim (named `new_claim`) and its completion in one act. With
    `artifacts_unchecked` the artifacts that the job expects have not been looked at yet."""
    if is_repeated_end(job, COMPLETED, attempt, claim_id):
        return unchanged(job)
    if job.supervised:
        return report_outcome(job, moment, attempt, status=COMPLETED, result=result, told=told)
    lines: tuple[AuditRecord, ...] = ()
    if job.status is PENDING:
        job, lines = _claim_by_hand(job, moment, new_claim)
    checked = bool(job.expected_artifacts) if checked is None else checked
    end = _end_fields(job, attempt, result=result, checked=checked)
    change = moved(job, COMPLETED, moment, "complete", end, attempt is None, told, lines)
    if artifacts_unchecked and job.expected_artifacts:
        raise ArtifactCheckNeeded(
            job
        )  # only now: a writer that has lost the claim must hear that, and not what to mend
    return change


def fail(
    job: Job, moment: Moment, *,
    attempt: int | None, reason: str, claim_id: str | None = None, result: str | None = None,
    told: EventBody | None = None,
) -> Change:  # fmt: skip
    """The work failed for good."""
    if is_repeated_end(job, ERROR, attempt, claim_id):
        return unchanged(job)
    if job.supervised:
        return report_outcome(job, moment, attempt, status=ERROR, reason=reason, told=told)
    end = _end_fields(job, attempt, reason=reason, result=result)
    return moved(job, ERROR, moment, "fail", end, unfenced=attempt is None, told=told)


def _end_fields(
    job: Job, attempt: int | None, *, result: str | None, reason: str | None = None, checked: bool | None = None
) -> Json:
    """What an end sets, always the same fields: the SQL stores do the same in one statement."""
    return {
        "ended_attempt": attempt, "result": result, "reason": reason, "checked": checked,
        "run": job.run, "checks": job.checks,
    }  # fmt: skip


def fail_retryable(
    job: Job, moment: Moment, *,
    attempt: int | None, reason: str, delay_seconds: float, claim_id: str | None = None, new_claim: str | None = None,
) -> Change:  # fmt: skip
    """The attempt failed and may be tried again, unless it has been tried often enough."""
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
    """The holder hands the job back unfinished; that costs neither a loss nor a retry."""
    check_fence(job, attempt, claim_id)
    if job.status is not RUNNING:
        return _same_or_illegal(job, PENDING)
    return moved(job, PENDING, moment, "release", {"owner": None, "reason": reason}, unfenced=attempt is None)


def cancel(job: Job, moment: Moment, *, attempt: int | None, reason: str | None, claim_id: str | None = None) -> Change:
    """The job is cancelled, even while a worker holds it."""
    if is_repeated_end(job, CANCELLED, attempt, claim_id):
        return unchanged(job)
    # A cancel is its owner's right, not a write that forgot its fence: it is never unfenced.
    return moved(job, CANCELLED, moment, "cancel", {"ended_attempt": attempt, "reason": reason or "cancelled"})


def set_status(
    job: Job, moment: Moment, *, to: Status, attempt: int | None,
    claim_id: str | None = None, new_claim: str | None = None,
) -> Change:  # fmt: skip
    """M's plain `status --set`: what the word means, done by the act that means it."""
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
    """An event is told: `started`, `completed` and `error` move the job or are refused, the others only renew it."""
    check_event(event)
    told = EventBody(detail=detail, data=check_data(dict(data)))
    if event == "completed":
        return complete(
            job, moment, attempt=attempt, claim_id=claim_id, new_claim=new_claim, result=job.result, told=told,
            artifacts_unchecked=artifacts_unchecked,
        )  # fmt: skip
    if event == "error":
        return fail(
            job, moment, attempt=attempt, claim_id=claim_id, reason=detail or "error", result=job.result, told=told
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
    """M's bare `next_seq`: the number is handed out, and a marker says that no event carries it."""
    return marked(unchanged(job), "reserved", job.last_seq + 1, moment)


def report_outcome(
    job: Job, moment: Moment, attempt: int | None, *, told: EventBody | None = None, **words: object
) -> Change:
    """While a worker holds the claim, what its agent says about the end is kept as its word; the worker looks first."""
    said = {name: word for name, word in words.items() if word is not None}
    if told is not None:
        said.update({"detail": told.detail} if told.detail else {}, **({"data": told.data} if told.data else {}))
    heard = _renewed_by_event(touched(job, moment, {"said": {"at": moment.second, **said}}), moment)
    return Change(job=heard, lines=(audit_record("said", moment, job, attempt=attempt, status=words["status"]),))


def check_fence(job: Job, attempt: int | None, claim_id: str | None = None) -> None:
    """A claim is valid while the job runs under exactly that attempt and, if the writer gives it, that claim id."""
    if attempt is None or (job.status is RUNNING and job.attempt == attempt and _is_claim(job, claim_id)):
        return
    raise ClaimLost(job=job.job_id, attempt=attempt, why=_why_lost(job, attempt, claim_id))


def _is_claim(job: Job, claim_id: str | None) -> bool:
    """Claims of an older version have no id, and are fenced by their number alone."""
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
    """Whether this write has ended the job already, and comes again; a writer that has lost the claim is refused.
    Without an attempt the status alone decides; with one, only the write that ended the job may come again."""
    if job.status is to and (attempt is None or (job.ended_attempt == attempt and _is_claim(job, claim_id))):
        return True
    check_fence(job, attempt, claim_id)
    return False


def _claim_by_hand(job: Job, moment: Moment, claim_id: str | None) -> tuple[Job, tuple[AuditRecord, ...]]:
    """Ending a job that was not claimed is a claim and an end, so that the history has no jump."""
    change = claim(job, moment, owner=MANUAL, lease_seconds=None, by=MANUAL, claim_id=claim_id, unfenced=True)
    return change.job, change.lines


def _set_running(job: Job, moment: Moment, attempt: int | None, claim_id: str | None, new_claim: str | None) -> Change:
    if attempt is not None:
        return heartbeat(job, moment, attempt=attempt, claim_id=claim_id, lease_seconds=None)
    return claim(job, moment, owner=MANUAL, lease_seconds=None, by="status", claim_id=new_claim, unfenced=True)


def _set_pending(job: Job, moment: Moment, attempt: int | None, claim_id: str | None) -> Change:
    if job.status is WAITING and attempt is None:
        return moved(job, PENDING, moment, "status", {"waiting_for": None, "due_at": None})
    return release(job, moment, attempt=attempt, claim_id=claim_id)


def _same_or_illegal(job: Job, to: Status) -> Change:
    if job.status is to:
        return unchanged(job)
    raise IllegalMove(job=job.job_id, status=job.status, to=to)


def _renewed_by_event(job: Job, moment: Moment) -> Job:
    """Any accepted event of the attempt renews its lease, and never shortens it."""
    if job.status is not RUNNING or job.lease is None:
        return job
    fresh = new_lease(_renewal_seconds(job, None), moment)
    longer = fresh if fresh.left_ms(moment) > job.lease.left_ms(moment) else job.lease
    return job.replace(lease=longer, heard_at=moment.second)


def _renewal_seconds(job: Job, asked: float | None) -> float:
    """As long as asked, else as long as the claim took it for: a worker's short lease stays short."""
    if asked is not None:
        return asked
    return job.lease.seconds if job.lease and job.lease.seconds else default_lease_seconds(job.timeout_sec)


def _unfenced(attempt: int | None) -> bool | None:
    return True if attempt is None else None
