"""Changes that other programs made to record files: `list`, `get` and `doctor` report them, and only `mam adopt`
applies them."""

from __future__ import annotations

from mam.errors import BadRecord, StoreUnavailable
from mam.jobs.adopt import adopt_known, adopt_new
from mam.jobs.status import PENDING, RUNNING
from mam.stores.common import chunks, new_claim_id
from mam.stores.files.lock import registry_lock
from mam.stores.files.mirror import older_text
from mam.stores.files.records import read_stamp, record_name
from mam.stores.port import Problem
from mam.stores.sql.rows import parse_row
from mam.util.clock import parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mam.jobs.adopt import Adoption
    from mam.jobs.record import Job
    from mam.stores.files.records import ParsedRecord
    from mam.stores.files.store import FilesStore
    from mam.stores.sql.rows import Row
    from mam.util.clock import Moment

REPORT_LIMIT = 1000
"""Record files that `list` checks: a flood of files must not slow it down."""

PATIENCE_SECONDS = 0.5
"""How long `list` waits for writers before it reports a file."""


class Adopted(Frozen):
    """The result for one record file."""

    job_id: str
    outcome: str
    """`new`, `changed`, `refused`, `unchanged`, `written again` or `unreadable`."""
    why: str | None = None


# -- for `list`, `get` and `doctor` ----------------------------------------------------------------------------


def differences(store: FilesStore) -> list[Problem]:
    """Record files that are new, changed, gone or unreadable; checks a bounded number."""
    there = set(store._open_mirror().records.ids(REPORT_LIMIT))
    newest = {row[0] for row in store._rows("newest ids", limit=REPORT_LIMIT)}
    return _confirmed(store, sorted(there | newest))


def difference(store: FilesStore, job_id: str) -> Problem | None:
    """How the record file of a job differs from what mam wrote, None when it does not."""
    return next(iter(_confirmed(store, [job_id])), None)


def _confirmed(store: FilesStore, job_ids: Sequence[str]) -> list[Problem]:
    """A writer may be between its commit and its files, or was killed there. An empty act finishes those files; then
    the suspect files are checked again."""
    suspects = [problem.file.removesuffix(".json") for problem in _differences(store, job_ids)]
    if not suspects:
        return []
    try:
        with registry_lock(store.address, PATIENCE_SECONDS):
            store._in_transaction(lambda: None)
    except StoreUnavailable:
        pass  # the store is read-only, or a writer takes long: report what was found
    return _differences(store, suspects)


def _differences(store: FilesStore, job_ids: Sequence[str]) -> list[Problem]:
    versions, epoch = store.versions(job_ids), store.journal_id
    found = (_difference(store, job_id, versions.get(job_id), epoch) for job_id in job_ids)
    return [problem for problem in found if problem is not None]


def _difference(store: FilesStore, job_id: str, known: int | None, epoch: str) -> Problem | None:
    """`known` is the version of the job in the registry."""
    name, mend = record_name(job_id), f"mam adopt {job_id}"
    try:
        text = store._open_mirror().records.read_bytes(job_id)
    except BadRecord as bad:
        return Problem(file=name, problem=str(bad.facts["problem"]), mend=mend)
    stamp = None if text is None else read_stamp(text)
    if stamp is not None and stamp.epoch == epoch and stamp.version > (known or 0) and store.archived(job_id) is None:
        older = older_text(f"job {job_id}")
        newer = f"is newer than the registry, which {older}; `mam rebuild` makes it again from them"
        return Problem(file=name, problem=newer, mend="mam rebuild")
    why = _describe(store, job_id, known, text, is_own=stamp is not None and stamp.epoch == epoch)
    return None if why is None else Problem(file=name, problem=why, mend=mend)


def _describe(store: FilesStore, job_id: str, known: int | None, text: bytes | None, *, is_own: bool) -> str | None:
    """How a record file differs that is not newer than the registry, None if it does not."""
    adopt = f"`mam adopt {job_id[:8]}`"
    if text is None:
        return None if known is None else f"is gone; the registry still has the job, and {adopt} writes the file again"
    if known is None and store.archived(job_id) is not None:
        return "is of a job that is in the archive; move the file away"
    if known is not None and is_own:
        return None
    try:
        store._open_mirror().records.read(job_id)
    except (BadRecord, FileNotFoundError) as bad:
        why = str(bad.facts["problem"]) if isinstance(bad, BadRecord) else "is gone"
        return f"{why}; mam left it alone"
    if known is None:
        return f"is not in the registry; {adopt} adds the job"
    return f"was changed by another program; {adopt} takes the change over"


# -- `mam adopt` -------------------------------------------------------------------------------------------------------


def foreign_ids(store: FilesStore) -> list[str]:
    """The jobs whose record files `mam adopt --all` would adopt."""
    there = store._open_mirror().records.ids()
    gone = {row[0] for row in store._rows("newest ids", limit=-1)} - set(there)
    differing = {problem.file.removesuffix(".json") for problem in _differences(store, there)}
    versions, epoch = store.versions(there), store.journal_id
    differing |= {
        job_id for job_id in there if 0 < store._open_mirror().mirrored_version(job_id, epoch) < versions.get(job_id, 0)
    }
    return sorted(differing) + sorted(gone)


def adopt(store: FilesStore, job_ids: Sequence[str], *, dry_run: bool = False) -> Iterator[Adopted]:
    """Adopts record files by the rules of `mam.jobs.adopt`, oldest first, in several transactions."""
    found, others = _read(store, job_ids, dry_run=dry_run)
    yield from others
    found.sort(key=lambda one: (parse_time(one.job.created_at), one.job.job_id))
    for chunk in chunks(found):
        if dry_run:
            known = store.versions([one.job.job_id for one in chunk])
            yield from (_preview(store, one, known) for one in chunk)
        else:
            yield from store._in_transaction(_adopt_all, store, [one.job.job_id for one in chunk])


def _preview(store: FilesStore, found: ParsedRecord, known: dict[str, int]) -> Adopted:
    job_id = found.job.job_id
    if job_id not in known:
        return Adopted(job_id=job_id, outcome="new")
    if _is_own(store, found):
        return Adopted(job_id=job_id, outcome="unchanged")
    complaint = _adoption(store, parse_row(store._rows("job", job_id=job_id)[0], store.address), found).complaint
    return Adopted(job_id=job_id, outcome="refused" if complaint else "changed", why=complaint)


def _read(store: FilesStore, job_ids: Sequence[str], *, dry_run: bool) -> tuple[list[ParsedRecord], list[Adopted]]:
    """The records to adopt, and the results for the other files."""
    found, others = [], []
    for job_id in job_ids:
        try:
            found.append(store._open_mirror().records.read(job_id))
        except BadRecord as problem:
            others.append(_unreadable(job_id, problem))
        except FileNotFoundError:
            store.get(job_id)  # UnknownJob, unless only its file is gone
            if not dry_run:
                store._in_transaction(store._repair_files, job_id)
            others.append(Adopted(job_id=job_id, outcome="written again"))
    return found, others


def _unreadable(job_id: str, problem: BadRecord) -> Adopted:
    return Adopted(job_id=job_id, outcome="unreadable", why=str(problem.facts["problem"]))


def _adopt_all(store: FilesStore, job_ids: Sequence[str]) -> list[Adopted]:
    return [one for job_id in job_ids if (one := _adopt(store, job_id)) is not None]


def _adopt(store: FilesStore, job_id: str) -> Adopted | None:
    """Reads the file again, under the lock. Returns None when it is gone."""
    try:
        found = store._open_mirror().records.read(job_id)
    except BadRecord as problem:
        return _unreadable(job_id, problem)
    except FileNotFoundError:
        return None
    rows = store._rows("job", job_id=job_id)
    if store._rows("archived", job_id=job_id):
        return Adopted(job_id=job_id, outcome="refused", why="the job is in the archive")
    if not rows and _is_own(store, found):
        raise store._open_mirror().older_database(job_id)
    if rows and _is_own(store, found):
        store._repair_files(job_id)  # it may be old
        return Adopted(job_id=job_id, outcome="unchanged")
    if found.secrets:
        store._secrets.keep(job_id, found.secrets)
    store._adopting.add(job_id)
    if not rows:
        insert_new(store, found.job, store._now())
        return Adopted(job_id=job_id, outcome="new")
    row = parse_row(rows[0], store.address)
    adoption = _adoption(store, row, found)
    if adoption.change.lines:
        store._write(row, adoption.change, store._now())
    else:
        store._rewrite_record(row)
    return Adopted(job_id=job_id, outcome="refused" if adoption.complaint else "changed", why=adoption.complaint)


def _is_own(store: FilesStore, found: ParsedRecord) -> bool:
    return found.stamp is not None and found.stamp.epoch == store.journal_id


def _adoption(store: FilesStore, row: Row, found: ParsedRecord) -> Adoption:
    return adopt_known(row.job, found.job, found.field_names, store._now(), _rival(store, row.job), new_claim_id())


def insert_new(store: FilesStore, job: Job, moment: Moment) -> None:
    """Inserts a job that the registry does not have, with the next number."""
    number = int(store._rows("next number")[0][0])
    change = adopt_new(without_duplicates(store, job), number, moment, new_claim_id())
    store._insert(change, moment)


def without_duplicates(store: FilesStore, job: Job) -> Job:
    """Removes from a copied record what only one job can have: its key, the retry or the continuation of a job, and a
    running exclusive key."""
    for name in ("key", "retry_of", "continues"):
        others = {other: None for other in ("key", "retry_of", "continues") if other != name}
        if store._registered_before(job.replace(**others)) is not None:
            job = job.replace(**{name: None})
    if job.status is RUNNING and _rival(store, job) is not None:
        job = job.replace(status=PENDING)
    return job


def _rival(store: FilesStore, job: Job) -> str | None:
    """The other job that runs under its exclusive key."""
    holder = store.holder(job.exclusive) if job.exclusive is not None else None
    return None if holder == job.job_id else holder
