"""What time alone does to a job: leases run out, waits come to an end, failures come back later.

No daemon does this. Every claim first settles a bounded number of due jobs, longest due first.
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
"""Jobs that one claim settles at most, so that no claim pays for a long absence of all others."""

BACKOFF_BASE_SECONDS = 10.0
BACKOFF_LIMIT_SECONDS = 3600.0


def is_due(job: Job, moment: Moment) -> bool:
    """Whether time has decided something about this job that the store has not yet been told."""
    left = left_ms(job, moment)
    return left is not None and left <= 0


def settle(job: Job, moment: Moment) -> Change:
    """The due job's next state; a job that is not due stays as it is."""
    if not is_due(job, moment):
        return unchanged(job)
    if job.status is WAITING:
        return moved(job, PENDING, moment, "due", {"waiting_for": None, "due_at": None})
    losses = job.losses + 1
    if losses >= job.max_losses:
        return moved(job, ERROR, moment, "sweep", {"losses": losses, "reason": f"lost {losses} times"})
    return moved(job, PENDING, moment, "sweep", {"losses": losses, "owner": None})


def next_deadline(job: Job) -> Lease | None:
    """When time decides something about this job: the end of its lease, or of its wait; None when time does not.

    A store that orders jobs by this orders exactly those that `settle` moves.
    """
    if job.status is RUNNING:
        return job.lease
    if job.status is WAITING and job.due_at is not None and job.waiting_for != DEPENDENCY:
        return Lease(expires_at=job.due_at)
    return None


def left_ms(job: Job, moment: Moment) -> int | None:
    """How long until then."""
    end = next_deadline(job)
    return None if end is None else end.left_ms(moment)


def seconds_until_due(jobs: Iterable[Job], moment: Moment) -> float | None:
    times = [left for job in jobs if (left := left_ms(job, moment)) is not None]
    return max(0, min(times)) / 1000 if times else None


def with_lease(job: Job, moment: Moment) -> Job:
    """An old running record has no lease; it gets one when mam first sees it."""
    if job.status is not RUNNING or job.lease is not None:
        return job
    return job.replace(lease=new_lease(default_lease_seconds(job.timeout_sec), moment))


def backoff_seconds(retries: int, chance: float) -> float:
    """Exponential with jitter: half of the step is certain, the other half is chance, so that herds spread."""
    step = min(BACKOFF_LIMIT_SECONDS, BACKOFF_BASE_SECONDS * 2.0 ** min(retries, 30))
    return step * (0.5 + chance / 2)


def is_quiet(job: Job, moment: Moment) -> bool:
    """Running, and silent for longer than it may be. Derived when shown, never stored."""
    if job.status is not RUNNING or not job.idle_timeout_sec:
        return False
    heard = parse_time(job.heard_at or job.updated_at)
    return moment.wall_ms - heard > job.idle_timeout_sec * 1000
