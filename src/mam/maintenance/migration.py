"""Copies one registry to another. The destination can be opened only when it is complete.

1. every job is copied as it is, in the order of the numbers; what is there already is skipped
2. what has changed at the source meanwhile is copied again, until nothing has
3. both are read from end to end and compared
4. the destination becomes a registry that can be opened

After an interruption, the same command continues.
"""

from __future__ import annotations

from mam.errors import BadRecord, Refused, UnknownJob
from mam.maintenance.batches import batches
from mam.stores.port import JobWithEvents, Query
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mam.maintenance.source import Source
    from mam.stores.port import Problem, Store

    Advance = Callable[[int], None]

ROUNDS = 5
"""After this many rounds of changes, the source counts as in use."""


class Moved(Frozen):
    jobs: int
    archived: int
    left_behind: list[Problem]


def copy(source: Source, store: Store, advance: Advance) -> Moved:
    """Steps 1 to 3; the caller does step 4."""
    state = source.state()
    _announce(source, store)
    there = {job.job_id for job in store.select(Query())}
    _import_jobs(source, store, source.ids(), there, advance)
    _take_in_archive(source, store)
    for pause in source.pauses():
        store.pause(pause)
    for _round in range(ROUNDS):
        now = source.state()
        if now == state:
            break
        changed, state = source.changed_since(state), now
        _import_jobs(source, store, changed, {*changed}, lambda _count: None)
    else:
        raise Refused(why=f"jobs keep changing in {source.address}. Stop its workers; the same command then continues.")
    return _compared(source, store, state)


def _announce(source: Source, store: Store) -> None:
    """Generations come before jobs, so that announcing an older one releases no job."""
    known = store.generations()
    for agent_id, one in source.generations().items():
        there = known.get(agent_id)
        heard = () if there is None else (*there.superseded, there.current)
        for generation_id in (*one.superseded, one.current):
            if generation_id not in heard:
                store.announce(agent_id, generation_id)


def _import_jobs(source: Source, store: Store, ids: Iterable[str], there: set[str], advance: Advance) -> None:
    """`there` are those that may have been copied before."""
    for batch in batches(ids):
        new = []
        for job_id in batch:
            kept = source.read(job_id)
            if kept is None or (job_id in there and _held(store, job_id) == kept):
                continue
            secrets = source.secrets(job_id)
            if secrets:
                store.keep_secrets(job_id, secrets)  # before the job: one that signs never speaks without a token
            new.append(kept)
        if new:
            store.import_jobs(new)
        advance(len(batch))


def _take_in_archive(source: Source, store: Store) -> None:
    """The archive only grows, in any order: what is there already is simply written again."""
    for batch in batches(source.archive()):
        store.import_jobs(batch, archived=True)


def _held(store: Store, job_id: str) -> JobWithEvents | None:
    try:
        return JobWithEvents(job=store.get(job_id), events=store.events(job_id))
    except (BadRecord, UnknownJob):
        return None


def _compared(source: Source, store: Store, state: str) -> Moved:
    ids = source.ids()
    gone = {job.job_id for job in store.select(Query())} - {*ids}
    different = [job_id for job_id in ids if _held(store, job_id) != source.read(job_id)]
    archived = 0
    there = store.archive_contents()
    for kept in source.archive():
        archived += 1
        if next(there, None) != kept:
            different.append(kept.job.job_id)
    more = [kept.job.job_id for kept in there]
    if source.state() != state:
        raise Refused(why=f"jobs changed in {source.address} at the last moment; the same command continues.")
    wrong = sorted({*gone, *different, *more})
    if wrong:
        shown = ", ".join(wrong[:5]) + (" …" if len(wrong) > 5 else "")
        raise Refused(
            why=f"{len(wrong):,} jobs are not the same in {source.address} and {store.address} ({shown}). Nothing was"
            " put in place; remove the latter and begin again."
        )
    return Moved(jobs=len(ids), archived=archived, left_behind=source.problems())
