"""Jobs that come after other jobs: when one may begin, and what becomes of it when one before it fails.

A job names those before it once, by id. A retry of one of them takes its place, so what counts is always the newest job
of a chain of retries; stores look that one up, and the rules here see only how it stands.
"""

from __future__ import annotations

from mam.errors import BadInput, Refused
from mam.jobs.change import Change, audit_record, moved, touched, unchanged
from mam.jobs.record import DEPENDENCY, Job
from mam.jobs.status import CANCELLED, COMPLETED, PENDING, WAITING, in_words
from mam.util.clock import Moment, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Dependencies = Mapping[str, Job | None]
    """For each id that a job comes after: the newest job of that chain, None when it is gone."""

AFTER_LIMIT = 1000


def check_after(job_id: str, after: Sequence[str]) -> list[str]:
    """Each once, in the order given; a job cannot come after itself."""
    ids = list(dict.fromkeys(after))
    if job_id in ids:
        raise BadInput(why=f"job {job_id} cannot come after itself")
    if len(ids) > AFTER_LIMIT:
        raise BadInput(why=f"a job may come after {AFTER_LIMIT} others at most, not {len(ids)}")
    return ids


def check_no_cycle(draft: Job, needed: Callable[[str], Job | None]) -> None:
    """Only records that somebody else wrote can name a job before it exists, and so close a circle."""
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
    """Those that the job still waits for."""
    return [job_id for job_id in job.after if not _is_done(job, needed.get(job_id))]


def failed_dependency(job: Job, needed: Dependencies) -> tuple[str, str] | None:
    """The first whose failure ends this job too, and what became of it; None when none does."""
    if job.on_dependency_failure != "cancel":
        return None
    failed = next((job_id for job_id in job.after if _has_failed(needed.get(job_id))), None)
    if failed is None:
        return None
    found = needed.get(failed)
    return failed, "is gone" if found is None else in_words(found.status)


def hold_for_dependencies(change: Change, needed: Dependencies, moment: Moment) -> Change:
    """A job just registered, held back by those that it comes after."""
    job = change.job
    if not open_dependencies(job, needed):
        return change
    waiting = job.replace(status=WAITING, waiting_for=DEPENDENCY)
    change = Change(job=waiting, lines=tuple({**said, "status": WAITING} for said in change.lines))
    return _cancel_if_failed(change, needed, moment) or change


def settle_dependency(job: Job, needed: Dependencies, moment: Moment) -> Change:
    """What the end of a job does to one that waits for it; unchanged when it still has to wait."""
    if job.status is not WAITING or job.waiting_for != DEPENDENCY:
        return unchanged(job)
    given_up = _cancel_if_failed(unchanged(job), needed, moment)
    if given_up is not None:
        return given_up
    if open_dependencies(job, needed):
        return unchanged(job)
    if job.due_at is not None and parse_time(job.due_at) > moment.wall_ms:
        said = audit_record("settled", moment, job, waiting_for="time")
        return Change(job=touched(job, moment, {"waiting_for": "time"}), lines=(said,))
    return moved(job, PENDING, moment, DEPENDENCY, {"waiting_for": None, "due_at": None})


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
