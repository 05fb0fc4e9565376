"""Making the database of a files store: a new one, one from the records of the old scripts or of mam 0.1.0, or one anew
from the record files when it was lost.

It is built under another name (`.new`), renamed when it is whole (`.whole`), and gets its own name last. Until then no
record file changes: the next process after a killed one begins again, or goes on with what is whole. Afterwards the
first act writes the record files.
"""

from __future__ import annotations

import os
from zlib import crc32

from mam.errors import BadRecord, StoreUnavailable
from mam.jobs.sweep import with_lease
from mam.stores.files.adopt import insert_new, without_duplicates
from mam.stores.files.mirror import ASIDE
from mam.stores.files.records import complete_events
from mam.stores.files.store import DATABASE, NEVER_MIRRORED, FilesStore
from mam.stores.port import JobWithEvents
from mam.stores.private_files import make_directories, replace_bytes, sync_directory
from mam.stores.sqlite.database import create_database, open_database
from mam.util.clock import parse_time
from mam.util.encoding import to_bytes
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    import apsw

    from mam.jobs.record import Job
    from mam.stores.files.records import ParsedRecord
    from mam.util.clock import Clock

    T = TypeVar("T")
    Rest = Callable[[FilesStore], None]

STEP, NAMED = 256, 5
OLD_JOURNAL = "journal.log"
_OLD_FORMAT = 2
"""Mam 0.1.0 writes 1, and refuses a journal of a higher one."""

_OF_0_1_0 = (
    "index.sqlite",
    "index.sqlite-wal",
    "index.sqlite-shm",
    "archive.sqlite",
    "pauses",
    "generations",
    "journal.end",
)
_BESIDE = ("", "-wal", "-shm")
_WHOLE = ".whole"
_LOST = "its database is missing, though mam wrote its record files; `mam rebuild` makes it anew from them"


class BuiltDatabase(Frozen):
    """What was taken over."""

    jobs: int
    unreadable: list[str]
    """Names of record files that mam left alone, each with what is wrong with it."""
    kept: str | None
    """Where the database that it replaces is now."""

    @property
    def left_alone(self) -> str:
        """The first of them, in a line."""
        more = len(self.unreadable) - NAMED
        return "; ".join(self.unreadable[:NAMED]) + (f"; and {more} more" if more > 0 else "")


class _Building(FilesStore):
    """The store while its database has another name, and its record files stay as they are."""

    SUFFIX = ".new"

    def _open(self) -> apsw.Connection:
        self._path = os.path.join(self.home, f"{DATABASE}{self.SUFFIX}")
        make_directories(self.home)
        return open_database(self._path, self._wait_seconds, shared=not self._on_network, under_lock=True)

    def _finish_earlier_acts(self) -> None:
        """Not now."""

    def _commit(self) -> None:
        self._run("COMMIT")

    def _check_not_restored(self, job_id: str) -> None:
        """No file is of this registry yet."""


def build_missing_database(directory: str, path: str, clock: Clock, wait_seconds: float) -> BuiltDatabase:
    """For the holder of the lock, when there is none: a new one, or the one that a killed process had finished."""
    home = os.path.dirname(path)
    is_kept_out = _is_kept_out(home)
    if is_kept_out and os.path.exists(f"{path}{_WHOLE}"):  # else an older mam may have written since it was made
        return BuiltDatabase(jobs=0, unreadable=[], kept=_put_in_place(path))
    if is_kept_out:
        raise StoreUnavailable(store=directory, problem=_LOST)
    return build_database(directory, path, clock, wait_seconds)


def build_database(
    directory: str, path: str, clock: Clock, wait_seconds: float, *, own: bool = False, rest: Rest | None = None
) -> BuiltDatabase:
    """For the holder of the lock. RecordFiles that mam wrote itself (`own`) are taken over as they are, with their numbers,
    and `rest` adds what record files do not hold."""
    home = os.path.dirname(path)
    shared = not _is_on_network(directory)
    new = f"{path}{_Building.SUFFIX}"
    for suffix in _BESIDE:
        _remove(new + suffix)
    _remove(f"{path}{_WHOLE}")
    create_database(new, clock.new_id(), wait_seconds, shared=shared)
    store = _Building(directory, clock, wait_seconds)
    is_of_0_1_0 = not own and os.path.exists(os.path.join(home, OLD_JOURNAL))
    try:
        found, unreadable = _records(store)
        if not own and any(one.stamp is not None for one in found):
            raise StoreUnavailable(store=directory, problem=_LOST)
        if is_of_0_1_0:
            _take_over_the_rest(store)
        if rest is not None:
            rest(store)
        if own or is_of_0_1_0:
            take_over(store, found)
        else:
            _adopt(store, found)
        store._in_transaction(lambda: store._rows("save mirrored", number=NEVER_MIRRORED))
    finally:
        store.close()
    _in_one_file(new, wait_seconds, shared=shared)
    os.rename(new, f"{path}{_WHOLE}")
    sync_directory(home)
    return BuiltDatabase(jobs=len(found), unreadable=unreadable, kept=_put_in_place(path))


def _put_in_place(path: str) -> str | None:
    """The finished database gets its name. Another one that has it is kept aside; its name there."""
    home, kept = os.path.dirname(path), None
    _keep_older_mam_out(home)
    for suffix in _BESIDE:  # SQLite would take a log that stays for a part of the new one
        if os.path.exists(path + suffix):
            make_directories(os.path.join(home, ASIDE))
            kept = kept or os.path.join(home, ASIDE, f"{DATABASE}.{os.urandom(4).hex()}")
            os.rename(path + suffix, kept + suffix)
    sync_directory(home)
    os.rename(f"{path}{_WHOLE}", path)
    sync_directory(home)
    _put_away(home)
    return kept


def _is_on_network(directory: str) -> bool:
    from mam.stores.sqlite.file_system import network_file_system

    return network_file_system(directory) is not None


def _records(store: FilesStore) -> tuple[list[ParsedRecord], list[str]]:
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


def _adopt(store: FilesStore, found: list[ParsedRecord]) -> None:
    """Numbered by the time that they give for their making, then by id."""
    found.sort(key=lambda one: (parse_time(one.job.created_at), one.job.job_id))
    for chunk in _steps(found):
        store._in_transaction(_adopt_some, store, chunk)


def _adopt_some(store: FilesStore, chunk: list[ParsedRecord]) -> None:
    moment = store._now()
    for one in chunk:
        if one.secrets:
            store._secrets.keep(one.job.job_id, one.secrets)
        insert_new(store, one.job, moment)


# -- records that mam wrote itself -------------------------------------------------------------------------------------


def take_over(store: FilesStore, found: list[ParsedRecord]) -> None:
    """As they are, with their numbers and events, but for jobs of the archive. RecordFiles that another program wrote come
    behind mam's own."""
    found = [one for one in found if not store._rows("archived", job_id=one.job.job_id)]
    jobs = _numbered([one.job for one in found], {one.job.job_id for one in found if one.stamp is not None})
    for one in found:
        if one.secrets:
            store._in_transaction(store._secrets.keep, one.job.job_id, one.secrets)
    for chunk in _steps(jobs):
        store._in_transaction(_take_over_some, store, chunk)


def _take_over_some(store: FilesStore, chunk: list[Job]) -> None:
    records, moment = store._open_mirror().records, store._now()
    for job in chunk:
        events = complete_events(records.events(job.job_id), job.last_seq)
        sound = with_lease(without_duplicates(store, job), moment)
        store.import_jobs([JobWithEvents(job=sound, events=events)])


def _numbered(jobs: list[Job], own: set[str]) -> list[Job]:
    """Each with a number of its own; records that have none, or that of another, come behind the others."""
    jobs.sort(
        key=lambda job: (job.job_id not in own, job.number == 0, job.number, parse_time(job.created_at), job.job_id)
    )
    highest = max((job.number for job in jobs), default=0)
    taken: set[int] = {0}
    made = []
    for job in jobs:
        if job.number in taken:
            highest += 1
            job = job.replace(number=highest)
        taken.add(job.number)
        made.append(job)
    return made


def _take_over_the_rest(store: FilesStore) -> None:
    """Of mam 0.1.0: archived jobs, pauses, generations of sessions. Secrets stay where they are."""
    from mam.stores.files.old_archive import read_archive
    from mam.stores.private_files import read_json_file

    for chunk in _steps(list(read_archive(os.path.join(store.home, "archive.sqlite")))):
        store.import_jobs(chunk, archived=True)
    from mam.jobs.pause import parse_pause

    for fields in read_json_file(os.path.join(store.home, "pauses")) or []:
        store.pause(parse_pause(fields))
    generations = read_json_file(os.path.join(store.home, "generations")) or {}
    for agent_id, known in generations.items():
        store._in_transaction(lambda: store._rows(
            "save generation", agent_id=agent_id, generation_id=known["current"],  # noqa: B023
            superseded=to_bytes(known["superseded"]).decode(),  # noqa: B023
        ))  # fmt: skip


# -- names -------------------------------------------------------------------------------------------------------------


def _in_one_file(path: str, wait_seconds: float, *, shared: bool) -> None:
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


def _newer_line() -> bytes:
    body = to_bytes({"journal": "newer", "first": 1, "format": _OLD_FORMAT})
    return b"%08x %s\n" % (crc32(body), body)


def _is_kept_out(home: str) -> bool:
    try:
        with open(os.path.join(home, OLD_JOURNAL), "rb") as file:
            return file.read(len(_newer_line())) == _newer_line()
    except FileNotFoundError:
        return False


def _keep_older_mam_out(home: str) -> None:
    """Mam 0.1.0, running or started later, finds a journal that only a newer mam can read, and refuses the store."""
    old = os.path.join(home, OLD_JOURNAL)
    if _is_kept_out(home):
        return
    if os.path.exists(old):
        aside = _aside(home)
        os.link(old, os.path.join(aside, f"{OLD_JOURNAL}.{os.urandom(4).hex()}"))
        sync_directory(aside)
    replace_bytes(old, _newer_line())


def _put_away(home: str) -> None:
    """The other files of mam 0.1.0, unread."""
    names = [name for name in os.listdir(home) if name in _OF_0_1_0 or _is_segment(name)]
    aside = _aside(home) if names else home
    for name in names:
        os.rename(os.path.join(home, name), os.path.join(aside, name))


def _is_segment(name: str) -> bool:
    return name.startswith("journal-") and name.endswith(".log")


def _aside(home: str) -> str:
    aside = os.path.join(home, ASIDE, "0.1.0")
    make_directories(aside)
    return aside


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _steps(things: Sequence[T]) -> Iterable[Sequence[T]]:
    return (things[begin : begin + STEP] for begin in range(0, len(things), STEP))
