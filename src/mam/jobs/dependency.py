"""Dependencies: when a job with dependencies can start, and what happens to it when one of them fails.

A job names its dependencies once, by id. A retry replaces the job that it retries, so the newest job of a chain of
retries counts; the store looks it up.
"""

from __future__ import annotations

from mam.errors import BadInput, Refused
from mam.jobs.change import Change, audit_record, moved, touched, unchanged
from mam.jobs.continuation import taken_up
from mam.jobs.record import DEPENDENCY, Job
from mam.jobs.status import CANCELLED, COMPLETED, PENDING, WAITING, in_words
from mam.util.clock import Moment, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Dependencies = Mapping[str, Job | None]
    """By the id of each dependency: the newest job of its chain of retries, None when it is gone."""

AFTER_LIMIT = 1000


def check_after(job_id: str, after: Sequence[str]) -> list[str]:
    """The ids without repetitions, in the given order. A job cannot depend on itself."""
    ids = list(dict.fromkeys(after))
    if job_id in ids:
        raise BadInput(why=f"job {job_id} cannot come after itself")
    if len(ids) > AFTER_LIMIT:
        raise BadInput(why=f"a job may come after {AFTER_LIMIT} others at most, not {len(ids)}")
    return ids


def check_no_cycle(draft: Job, needed: Callable[[str], Job | None]) -> None:
    """Only a record that another program wrote can name a job before it exists, and so close a cycle."""
    seen: set[str] = set()
    ahead = list(draft.after)
    while ahead:
        job_id = ahead.pop()
        if job_id == draft.job_id:
            raise Refused(why=f"Job {draft.job_id} would wait for itself: one of those it comes after waits for it.")
        if job_id not in seen:
            seen.add(job_id)
            found = needed(job_id)
            ahead.extend(found.after if found is not None and found.waiting_for == DEPENDENCY else ())


def open_dependencies(job: Job, needed: Dependencies) -> list[str]:
    """The dependencies that the job still waits for."""
    return [job_id for job_id in job.after if not _is_done(job, needed.get(job_id))]


def failed_dependency(job: Job, needed: Dependencies) -> tuple[str, str] | None:
    """The first dependency whose failure cancels this job, and how it ended; None when there is none."""
    if job.on_dependency_failure != "cancel":
        return None
    failed = next((job_id for job_id in job.after if _has_failed(needed.get(job_id))), None)
    if failed is None:
        return None
    found = needed.get(failed)
    return failed, "is gone" if found is None else in_words(found.status)


def hold_for_dependencies(change: Change, needed: Dependencies, moment: Moment) -> Change:
    """A new job waits if it has open dependencies."""
    job = change.job
    if not open_dependencies(job, needed):
        return change.replace(job=job.replace(**taken_up(job, needed)))
    waiting = job.replace(status=WAITING, waiting_for=DEPENDENCY)
    change = Change(job=waiting, lines=tuple({**line, "status": WAITING} for line in change.lines))
    return _cancel_if_failed(change, needed, moment) or change


def settle_dependency(job: Job, needed: Dependencies, moment: Moment) -> Change:
    """Applies the end of a dependency to a waiting job; unchanged while it still has to wait."""
    if job.status is not WAITING or job.waiting_for != DEPENDENCY:
        return unchanged(job)
    given_up = _cancel_if_failed(unchanged(job), needed, moment)
    if given_up is not None:
        return given_up
    if open_dependencies(job, needed):
        return unchanged(job)
    if job.due_at is not None and parse_time(job.due_at) > moment.wall_ms:
        line = audit_record("settled", moment, job, waiting_for="time")
        return Change(job=touched(job, moment, {"waiting_for": "time", **taken_up(job, needed)}), lines=(line,))
    return moved(job, PENDING, moment, DEPENDENCY, {"waiting_for": None, "due_at": None, **taken_up(job, needed)})


def _cancel_if_failed(change: Change, needed: Dependencies, moment: Moment) -> Change | None:
    called_off = failed_dependency(change.job, needed)
    if called_off is None:
        return None
    failed, why = called_off
    reason = f"job {failed}, which it comes after, {why}"
    return moved(change.job, CANCELLED, moment, DEPENDENCY, {"reason": reason}, lines=change.lines)


def _is_done(job: Job, needed: Job | None) -> bool:
    if needed is not None and needed.status is COMPLETED:
        return True
    return job.on_dependency_failure == "run" and _has_failed(needed)


def _has_failed(needed: Job | None) -> bool:
    return needed is None or (needed.status.ended and needed.status is not COMPLETED)
