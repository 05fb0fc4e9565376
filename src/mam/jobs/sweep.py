"""Changes that only time causes: leases expire, waits end, and failed attempts become due for a retry.

No daemon is needed: every claim first settles a bounded number of due jobs, longest due first.
"""

from __future__ import annotations

from mam.jobs.change import Change, moved, unchanged
from mam.jobs.lease import Lease, default_lease_seconds, new_lease
from mam.jobs.record import DEPENDENCY, Job
from mam.jobs.status import ERROR, PENDING, RUNNING, WAITING
from mam.util.clock import Moment, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SWEEP_LIMIT = 16
"""How many due jobs one claim settles at most, so that a claim after a long pause stays fast."""

BACKOFF_BASE_SECONDS = 10.0
BACKOFF_LIMIT_SECONDS = 3600.0


def is_due(job: Job, moment: Moment) -> bool:
    """Whether the job's lease or wait has ended and the store has not applied that yet."""
    left = left_ms(job, moment)
    return left is not None and left <= 0


def settle(job: Job, moment: Moment) -> Change:
    """Moves a due job to its next status; a job that is not due stays unchanged."""
    if not is_due(job, moment):
        return unchanged(job)
    if job.status is WAITING:
        return moved(job, PENDING, moment, "due", {"waiting_for": None, "due_at": None})
    if job.lease is not None and job.lease.left_ms(moment) > 0:
        from mam.jobs.question_acts import expire

        return expire(job, moment)
    losses = job.losses + 1
    if losses >= job.max_losses:
        return moved(job, ERROR, moment, "sweep", {"losses": losses, "reason": f"lost {losses} times"})
    return moved(job, PENDING, moment, "sweep", {"losses": losses, "owner": None})


def next_deadline(job: Job) -> Lease | None:
    """When the job's lease or wait ends; None when it has neither.

    A store that orders jobs by this value orders exactly the jobs that `settle` moves.
    """
    if job.status is RUNNING:
        return job.lease if not job.questions else _sooner(job.lease, job)
    if job.status is WAITING and job.due_at is not None and job.waiting_for != DEPENDENCY:
        return Lease(expires_at=job.due_at)
    return None


def _sooner(lease: Lease | None, job: Job) -> Lease | None:
    """The lease or the first deadline of a question, whichever is earlier."""
    from mam.jobs.question import earliest_deadline

    end = earliest_deadline(job)
    if end is None or lease is None:
        return lease
    if end.boot_id and end.boot_id == lease.boot_id:
        return end if end.boot_ms < lease.boot_ms else lease
    return end if end.wall_ms < lease.wall_ms else lease


def left_ms(job: Job, moment: Moment) -> int | None:
    """Milliseconds until that deadline; negative when it has passed."""
    end = next_deadline(job)
    return None if end is None else end.left_ms(moment)


def seconds_until_due(jobs: Iterable[Job], moment: Moment) -> float | None:
    times = [left for job in jobs if (left := left_ms(job, moment)) is not None]
    return max(0, min(times)) / 1000 if times else None


def with_lease(job: Job, moment: Moment) -> Job:
    """A running record of an old version has no lease; it gets one when mam first reads it."""
    if job.status is not RUNNING or job.lease is not None:
        return job
    return job.replace(lease=new_lease(default_lease_seconds(job.timeout_sec), moment))


def _asks(job: Job) -> bool:
    from mam.jobs.question import count_open

    return count_open(job) > 0


def backoff_seconds(retries: int, chance: float) -> float:
    """Exponential back-off with jitter: half of the step is fixed, the other half random."""
    step = min(BACKOFF_LIMIT_SECONDS, BACKOFF_BASE_SECONDS * 2.0 ** min(retries, 30))
    return step * (0.5 + chance / 2)


def is_quiet(job: Job, moment: Moment) -> bool:
    """Running, and without a sign of life for longer than its idle timeout. Computed for display, never stored."""
    if job.status is not RUNNING or not job.idle_timeout_sec or (job.questions and _asks(job)):
        return False
    heard = parse_time(job.heard_at or job.updated_at)
    return moment.wall_ms - heard > job.idle_timeout_sec * 1000
