"""Builds the database of a files store: a new one, or one from the record files of the old scripts, of mam 0.1.0, or of
a registry whose database was lost.

The database is built under another name (`.new`), renamed when it is complete (`.whole`), and gets its own name last.
Until then no record file changes: after a kill, the next process builds it again, or continues with the complete one.
The first act afterwards writes the record files.
"""

from __future__ import annotations

import os

from mam.errors import BadRecord, StoreUnavailable
from mam.jobs.sweep import with_lease
from mam.stores.common import chunks
from mam.stores.files import upgrade
from mam.stores.files.adopt import insert_new, without_duplicates
from mam.stores.files.mirror import ASIDE
from mam.stores.files.records import complete_events
from mam.stores.files.store import DATABASE, NEVER_MIRRORED, FilesStore
from mam.stores.port import JobWithEvents
from mam.stores.private_files import make_directories, sync_directory
from mam.stores.sqlite.database import create_database, open_database
from mam.stores.sqlite.file_system import network_file_system
from mam.util.clock import parse_time
from mam.util.frozen import Frozen
from mam.util.gitignore import ignore_in_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import apsw

    from mam.jobs.record import Job
    from mam.stores.files.records import ParsedRecord
    from mam.util.clock import Clock

    AddRest = Callable[[FilesStore], None]

NAMED = 5
_SUFFIXES = ("", "-wal", "-shm")
_NEW, _WHOLE = ".new", ".whole"
_LOST = "its database is missing, though mam wrote its record files; `mam rebuild` makes it again from them"


class BuiltDatabase(Frozen):
    jobs: int
    unreadable: list[str]
    """Names of record files that mam left alone, each with its problem."""
    kept: str | None
    """Where the database that it replaces is now."""

    @property
    def left_alone(self) -> str:
        """The first unreadable files, in a line."""
        more = len(self.unreadable) - NAMED
        return "; ".join(self.unreadable[:NAMED]) + (f"; and {more} more" if more > 0 else "")


class _BuildingStore(FilesStore):
    """The store while its database has another name; it writes no record files."""

    def _open(self) -> apsw.Connection:
        self._path = os.path.join(self.home, f"{DATABASE}{_NEW}")
        make_directories(self.home)
        ignore_in_git(self.home)  # it holds secrets, and the directory of the old scripts may be tracked
        return open_database(self._path, self._wait_seconds, shared=not self._on_network, under_lock=True)

    def _finish_earlier_acts(self) -> None:
        """Record files stay as they are."""

    def _commit(self) -> None:
        self._run("COMMIT")

    def _check_not_restored(self, job_id: str) -> None:
        """No file is of this database yet."""


def build_missing_database(directory: str, path: str, clock: Clock, wait_seconds: float) -> BuiltDatabase:
    """Under the lock, when there is no database: builds one, or puts the one in place that a killed process had
    completed."""
    is_locked_out = upgrade.is_old_mam_locked_out(os.path.dirname(path))
    if is_locked_out and os.path.exists(f"{path}{_WHOLE}"):  # otherwise mam 0.1.0 may have written since
        return BuiltDatabase(jobs=0, unreadable=[], kept=_put_in_place(path))
    if is_locked_out:
        raise StoreUnavailable(store=directory, problem=_LOST)
    return build_database(directory, path, clock, wait_seconds)


def build_database(
    directory: str, path: str, clock: Clock, wait_seconds: float, *, own: bool = False, add_rest: AddRest | None = None
) -> BuiltDatabase:
    """Under the lock. Records that mam wrote (`own`) keep their numbers; `add_rest` adds what record files do not
    hold."""
    home = os.path.dirname(path)
    shared = network_file_system(directory) is None
    new = f"{path}{_NEW}"
    for suffix in _SUFFIXES:
        _remove(new + suffix)
    _remove(f"{path}{_WHOLE}")
    create_database(new, clock.new_id(), wait_seconds, shared=shared)
    store = _BuildingStore(directory, clock, wait_seconds)
    is_of_0_1_0 = not own and upgrade.is_of_0_1_0(home)
    try:
        found, unreadable = _read_records(store)
        if not own and any(one.stamp is not None for one in found):
            raise StoreUnavailable(store=directory, problem=_LOST)
        if is_of_0_1_0:
            upgrade.import_rest(store)
        if add_rest is not None:
            add_rest(store)
        if own or is_of_0_1_0:
            _import_records(store, found)
        else:
            _adopt_records(store, found)
        store._in_transaction(lambda: store._rows("save mirrored", number=NEVER_MIRRORED))
    finally:
        store.close()
    _merge_log(new, wait_seconds, shared=shared)
    os.rename(new, f"{path}{_WHOLE}")
    sync_directory(home)
    return BuiltDatabase(jobs=len(found), unreadable=unreadable, kept=_put_in_place(path))


def _put_in_place(path: str) -> str | None:
    """Gives the complete database its name. Moves another database with that name aside, and returns where it is."""
    home, kept = os.path.dirname(path), None
    upgrade.lock_out_old_mam(home)
    for suffix in _SUFFIXES:  # SQLite would read a log that stays as a part of the new database
        if os.path.exists(path + suffix):
            make_directories(os.path.join(home, ASIDE))
            kept = kept or os.path.join(home, ASIDE, f"{DATABASE}.{os.urandom(4).hex()}")
            os.rename(path + suffix, kept + suffix)
    sync_directory(home)
    os.rename(f"{path}{_WHOLE}", path)
    sync_directory(home)
    upgrade.move_old_files(home)
    return kept


def _read_records(store: FilesStore) -> tuple[list[ParsedRecord], list[str]]:
    found, unreadable = [], []
    records = store._open_mirror().records
    for job_id in records.ids():
        try:
            found.append(records.read(job_id))
        except BadRecord as bad:
            unreadable.append(f"{job_id}.json: {bad.facts['problem']}")
        except FileNotFoundError:
            continue
    return found, unreadable


# -- records of the old scripts ----------------------------------------------------------------------------------------


def _adopt_records(store: FilesStore, found: list[ParsedRecord]) -> None:
    """Numbers the jobs by `created_at`, then by id."""
    found.sort(key=lambda one: (parse_time(one.job.created_at), one.job.job_id))
    for chunk in chunks(found):
        store._in_transaction(_adopt_some, store, chunk)


def _adopt_some(store: FilesStore, chunk: Sequence[ParsedRecord]) -> None:
    moment = store._now()
    for one in chunk:
        if one.secrets:
            store._secrets.keep(one.job.job_id, one.secrets)
        insert_new(store, one.job, moment)


# -- records that mam itself wrote -------------------------------------------------------------------------------------


def _import_records(store: FilesStore, found: list[ParsedRecord]) -> None:
    """Imports the records with their numbers and events, except those of archived jobs. Records that another program
    wrote come after mam's own."""
    found = [one for one in found if not store._rows("archived", job_id=one.job.job_id)]
    jobs = _number_jobs([one.job for one in found], {one.job.job_id for one in found if one.stamp is not None})
    for one in found:
        if one.secrets:
            store._in_transaction(store._secrets.keep, one.job.job_id, one.secrets)
    for chunk in chunks(jobs):
        store._in_transaction(_import_some, store, chunk)


def _import_some(store: FilesStore, chunk: Sequence[Job]) -> None:
    records, moment = store._open_mirror().records, store._now()
    for job in chunk:
        events = complete_events(records.events(job.job_id), job.last_seq)
        sound = with_lease(without_duplicates(store, job), moment)
        store.import_jobs([JobWithEvents(job=sound, events=events)])


def _number_jobs(jobs: list[Job], own: set[str]) -> list[Job]:
    """Gives each job its own number; a job without one, or with that of another, gets one after the others."""
    jobs.sort(
        key=lambda job: (job.job_id not in own, job.number == 0, job.number, parse_time(job.created_at), job.job_id)
    )
    highest = max((job.number for job in jobs), default=0)
    taken: set[int] = {0}
    numbered = []
    for job in jobs:
        if job.number in taken:
            highest += 1
            job = job.replace(number=highest)
        taken.add(job.number)
        numbered.append(job)
    return numbered


# -- files -------------------------------------------------------------------------------------------------------------


def _merge_log(path: str, wait_seconds: float, *, shared: bool) -> None:
    """Moves the rest of the log into the database, so that one rename moves everything. The database is then marked for
    a log again, so that the processes that open it first need not change that together."""
    if not shared:
        return
    database = open_database(path, wait_seconds)
    try:
        for mode in ("DELETE", "WAL"):
            database.execute(f"PRAGMA journal_mode = {mode}").fetchall()
    finally:
        database.close()


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
