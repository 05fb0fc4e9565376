"""Moves old ended jobs to the archive, in batches, so that claims continue, and summarises their journal entries.

The refs that keep the changes of a job in its git repository are removed with it.

An entry is summarised after every consumer of the store has passed it. A consumer that was silent for longer than the
retention does not hold this back: it is lost, and starts over when it returns.
"""

from __future__ import annotations

from mam.jobs.status import Status
from mam.maintenance.batches import batches
from mam.stores.port import Query
from mam.stores.silence import passed_by_all
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.jobs.record import Job
    from mam.registry import Registry

ENDED = frozenset(status for status in Status if status.ended)


class Retention(Frozen):
    before: str
    """Only jobs that ended before this second."""
    statuses: frozenset[Status] = ENDED


class Pruned(Frozen):
    """How many were moved, by the status in which they ended, and which was the last."""

    counts: dict[Status, int]
    last: Job | None = None
    entries: int = 0
    """How many entries of the journal were summarised away."""


def too_old(registry: Registry, retention: Retention) -> Iterator[Job]:
    """Newest first, without the newest of all; `Store.archive` has the last word about each."""
    newest = _newest(registry)
    for job in registry.select(Query(statuses=retention.statuses)):
        if _is_meant(job, retention) and (newest is None or job.number < newest.number):
            yield job


def counted(registry: Registry, retention: Retention) -> dict[Status, int]:
    """How many there are of each status, without reading them."""
    found = registry.store.ended_before(retention.before)
    newest = newest_too_old(registry, retention)
    counts = {status: found.get(status, 0) - (newest is not None and newest.status is status) for status in Status}
    return {status: count for status, count in counts.items() if count and status in retention.statuses}


def newest_too_old(registry: Registry, retention: Retention) -> Job | None:
    """The newest job of all, if nothing but that keeps it here."""
    newest = _newest(registry)
    return newest if newest is not None and _is_meant(newest, retention) else None


def _newest(registry: Registry) -> Job | None:
    """No store moves it away, so that no number is given twice."""
    return next(iter(registry.select(Query())), None)


def _is_meant(job: Job, retention: Retention) -> bool:
    return job.status in retention.statuses and (job.ended_at or job.updated_at) < retention.before


def prune(registry: Registry, retention: Retention, days: float, moved: Callable[[int], None]) -> Pruned:
    """`days`: a consumer that was silent for longer is lost."""
    counts: dict[Status, int] = {}
    last: Job | None = None
    below, entries = passed_by_all(registry.store, days), 0
    for batch in batches(too_old(registry, retention)):
        _forget_changes(batch)
        gone = set(registry.archive([job.job_id for job in batch]))
        for job in batch:
            if job.job_id in gone:
                counts[job.status] = counts.get(job.status, 0) + 1
                last = job
        moved(len(gone))
    for ids in batches(registry.store.unsummarised(below)):
        entries += registry.store.summarise(ids, below)
    return Pruned(counts=counts, last=last, entries=entries)


def _forget_changes(jobs: list[Job]) -> None:
    """Jobs outside of git do not pay for git's modules."""
    changed = [job for job in jobs if "changes" in (job.run or {})]
    if changed:
        from mam.work.git.forget import forget_changes

        forget_changes(changed)
