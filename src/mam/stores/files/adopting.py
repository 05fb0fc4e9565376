"""What other programs wrote into record files: seen by `list`, `get` and `doctor`, and taken over only by `mam adopt`."""

from __future__ import annotations

from mam.clock import parse_time
from mam.errors import BadRecord, StoreUnavailable
from mam.frozen import Frozen
from mam.jobs.adopt import adopt_known, adopt_new
from mam.jobs.status import PENDING, RUNNING
from mam.stores.common import new_claim_id
from mam.stores.files.lock import registry_lock
from mam.stores.files.records import record_name, stamp_of
from mam.stores.port import Problem
from mam.stores.sql.rows import row_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mam.clock import Moment
    from mam.jobs.record import Job
    from mam.stores.files.records import Found, Stamp
    from mam.stores.files.store import FilesStore

LOOKED_AT = 1000
"""Record files that a list looks at: enough for people, and a flood of files slows no command down."""

PATIENCE_SECONDS = 0.5
"""How long a list waits for writers before it calls a file odd."""

STEP = 256
"""Records adopted under one hold of the lock."""


class Adopted(Frozen):
    """What became of one record file."""

    job_id: str
    outcome: str
    """`new`, `changed`, `refused`, `written again` or `unreadable`."""
    why: str | None = None


def differences(store: FilesStore) -> list[Problem]:
    """Record files that are new, changed or unreadable; a bounded look."""
    there = set(store._files().records.ids(LOOKED_AT))
    newest = {row[0] for row in store._rows("newest ids", limit=LOOKED_AT)}
    return _certain(store, sorted(there | newest))


def difference(store: FilesStore, job_id: str) -> Problem | None:
    """How the record file of a job differs from what mam wrote, None when it does not."""
    found = _certain(store, [job_id])
    return found[0] if found else None


def _certain(store: FilesStore, job_ids: list[str]) -> list[Problem]:
    """A writer may be between its commit and its files: what looks odd is looked at again when none is."""
    suspects = [job_id for job_id in job_ids if _difference(store, job_id) is not None]
    if not suspects:
        return []
    try:
        with registry_lock(store.address, PATIENCE_SECONDS):
            store._act(lambda: None)
    except StoreUnavailable:
        pass  # nobody may write, or somebody writes for long: as it looks
    again = (_difference(store, job_id) for job_id in suspects)
    return [problem for problem in again if problem is not None]


def _difference(store: FilesStore, job_id: str) -> Problem | None:
    try:
        text = store._files().records.text(job_id)
    except BadRecord as bad:
        return Problem(file=record_name(job_id), problem=str(bad.facts["problem"]))
    known, stamp = store.version_of(job_id), None if text is None else stamp_of(text)
    if text is None:
        why = f"is gone; the registry still has the job, and `mam adopt {job_id[:8]}` writes the file again"
        return None if known is None else Problem(file=record_name(job_id), problem=why)
    if known is None:
        return Problem(file=record_name(job_id), problem=_unknown(store, job_id, stamp))
    if stamp is None:
        why = "was changed by another program" if text.strip() else "is empty"
        return Problem(file=record_name(job_id), problem=f"{why}; `mam adopt {job_id[:8]}` takes the change over")
    return None


def _unknown(store: FilesStore, job_id: str, stamp: Stamp | None) -> str:
    if store.archived(job_id) is not None:
        return "is of a job that is in the archive; move the file away"
    if stamp is not None and stamp.epoch == store.journal_id:
        return "is of a job that the registry had: its database is older than its record files; run `mam rebuild`"
    return f"is not in the registry; `mam adopt {job_id[:8]}` takes it in"


def foreign_ids(store: FilesStore) -> list[str]:
    """Of all record files that `mam adopt --all` would take over."""
    there = store._files().records.ids()
    gone = {row[0] for row in store._rows("newest ids", limit=-1)} - set(there)
    odd = {job_id for job_id in there if _difference(store, job_id) is not None or _is_out_of_date(store, job_id)}
    return [job_id for job_id in there if job_id in odd] + sorted(gone)


def _is_out_of_date(store: FilesStore, job_id: str) -> bool:
    """A file of mam's own from before the last act, as a restored backup has them."""
    return store._files().version_shown(job_id, store.journal_id) < (store.version_of(job_id) or 0)


def adopt(store: FilesStore, job_ids: Sequence[str], *, dry_run: bool = False) -> Iterator[Adopted]:
    """Takes record files over by the rules of `mam.jobs.adopt`, the oldest first, some at a time."""
    found, others = _read(store, job_ids, dry_run=dry_run)
    yield from others
    found.sort(key=lambda one: (parse_time(one.job.created_at), one.job.job_id))
    for begin in range(0, len(found), STEP):
        chunk = found[begin : begin + STEP]
        if dry_run:
            yield from (Adopted(job_id=one.job.job_id, outcome=_kind(store, one.job.job_id)) for one in chunk)
        else:
            yield from store._act(_adopt_all, store, chunk)


def _kind(store: FilesStore, job_id: str) -> str:
    return "new" if store.version_of(job_id) is None else "changed"


def _read(store: FilesStore, job_ids: Sequence[str], *, dry_run: bool) -> tuple[list[Found], list[Adopted]]:
    """The records to adopt, and what is said of the others at once."""
    found, others = [], []
    for job_id in job_ids:
        try:
            found.append(store._files().records.read(job_id))
        except BadRecord as problem:
            others.append(Adopted(job_id=job_id, outcome="unreadable", why=str(problem.facts["problem"])))
        except FileNotFoundError:
            store.get(job_id)  # UnknownJob, unless only its file is gone
            if not dry_run:
                store._act(store._repair, job_id)
            others.append(Adopted(job_id=job_id, outcome="written again"))
    return found, others


def _adopt_all(store: FilesStore, chunk: list[Found]) -> list[Adopted]:
    return [_adopt(store, one, store._moment()) for one in chunk]


def _adopt(store: FilesStore, found: Found, moment: Moment) -> Adopted:
    job_id = found.job.job_id
    rows = store._rows("job", job_id=job_id)
    if store._rows("archived", job_id=job_id):
        return Adopted(job_id=job_id, outcome="refused", why="the job is in the archive")
    if not rows and found.stamp is not None and found.stamp.epoch == store.journal_id:
        raise store._files().is_ahead(job_id)
    if rows and found.stamp is not None:  # as mam wrote it, and maybe older than the registry: nothing to take over
        store._repair(job_id)
        return Adopted(job_id=job_id, outcome="written again")
    if found.secrets:
        store._secrets.keep(job_id, found.secrets)
    if not rows:
        insert_new(store, found.job, moment)
        return Adopted(job_id=job_id, outcome="new")
    row = row_of(rows[0], store.address)
    rival = _rival(store, row.job)
    adoption = adopt_known(row.job, found.job, found.given, moment, rival, new_claim_id())
    if adoption.change.lines:
        store._write(row, adoption.change, moment)
    else:
        store._shown_again(row)
    return Adopted(job_id=job_id, outcome="refused" if adoption.complaint else "changed", why=adoption.complaint)


def insert_new(store: FilesStore, job: Job, moment: Moment) -> None:
    """A record that mam has not seen: numbered behind the others."""
    number = int(store._rows("next number")[0][0])
    if job.status is RUNNING and _rival(store, job) is not None:
        job = job.replace(status=PENDING)  # a copy of a running job waits for its turn
    change = adopt_new(job, number, moment, new_claim_id())
    store._insert(change, store._root_of(change.job), moment)


def _rival(store: FilesStore, job: Job) -> str | None:
    """The job that runs under its exclusive key."""
    holder = store.holder(job.exclusive) if job.exclusive is not None else None
    return None if holder == job.job_id else holder
