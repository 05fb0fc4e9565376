"""Making the database of a files store: a new one, one from the records of the old scripts or of mam 0.1.0, or one anew from the
record files when it was lost.

It is built under another name (`.new`), renamed when it is whole (`.whole`), and gets its own name last. A process that is
killed on the way leaves the record files as they are. The next one begins again, or goes on with what is whole.
"""

from __future__ import annotations

import os
from zlib import crc32

from mam.clock import parse_time
from mam.errors import BadRecord, StoreUnavailable
from mam.frozen import Frozen
from mam.jobs.status import PENDING, RUNNING
from mam.stores.beside import make_directories, replace_bytes, sync_directory
from mam.stores.files.adopting import insert_new
from mam.stores.files.mirror import ASIDE, Mirror
from mam.stores.files.records import whole_events
from mam.stores.files.store import DATABASE, STORE, FilesStore
from mam.stores.port import Kept
from mam.stores.sqlite.database import create_database, open_database
from mam.stores.sqlite.store import SqliteStore
from mam.writing import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    import apsw

    from mam.clock import Clock
    from mam.jobs.record import Job
    from mam.stores.files.records import Found

    T = TypeVar("T")

STEP = 256
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


class Made(Frozen):
    """What was taken over."""

    jobs: int
    unreadable: list[str]
    """Names of record files that mam left alone, each with what is wrong with it."""
    changed: list[str]
    """Jobs that could not be taken over as they are, each with what is other now."""


class _Building(FilesStore):
    """The store while its database has another name. It writes no record file: the first act under the right name does."""

    SUFFIX = ".new"

    def _open(self) -> apsw.Connection:
        self._path = os.path.join(self.home, f"{DATABASE}{self.SUFFIX}")
        make_directories(self.home)
        return open_database(self._path, self._wait_seconds, shared=not self._on_network, under_lock=True)

    def _finish_mirror(self) -> None:
        pass

    def _commit(self) -> None:
        SqliteStore._commit(self)

    def _check_not_older(self, job_id: str) -> None:
        pass


class _Taking(FilesStore):
    """The store when it writes the record files for the first time."""

    def _files(self) -> Mirror:
        if self._mirror is None:
            self._mirror = Mirror(self._directory, self.home, keeps_aside=False)
        return self._mirror


def make_missing(directory: str, path: str, clock: Clock, wait_seconds: float) -> Made:
    """For the holder of the lock, when there is no database: a new one, or the one that a killed process had finished."""
    home = os.path.dirname(path)
    is_kept_out = _is_kept_out(home)
    if is_kept_out and os.path.exists(f"{path}{_WHOLE}"):  # else an older mam may have written since it was made
        put_in_place(home, path)
        write_files(directory, clock, wait_seconds)
        return Made(jobs=0, unreadable=[], changed=[])
    if is_kept_out:
        why = f"its database {STORE}/{DATABASE} is gone; `mam rebuild` makes it anew from the record files"
        raise StoreUnavailable(store=directory, problem=why)
    made = make_database(directory, path, clock, wait_seconds)
    put_in_place(home, path)
    write_files(directory, clock, wait_seconds)
    return made


def make_database(
    directory: str,
    path: str,
    clock: Clock,
    wait_seconds: float,
    *,
    own: bool = False,
    give: Callable[[FilesStore], None] | None = None,
) -> Made:
    """For the holder of the lock, who puts it in its place then. Records that mam wrote itself (`own`) are taken over as they
    are, with their numbers; `give` adds what they do not hold."""
    home = os.path.dirname(path)
    shared = not _is_on_network(directory)
    new = f"{path}{_Building.SUFFIX}"
    for suffix in (*_BESIDE, "-journal"):
        _remove(new + suffix)
    _remove(f"{path}{_WHOLE}")
    create_database(new, clock.new_id(), wait_seconds, shared=shared)
    store = _Building(directory, clock, wait_seconds)
    is_of_0_1_0 = os.path.exists(os.path.join(home, OLD_JOURNAL)) and not own
    changed: list[str] = []
    try:
        found, unreadable = _records(store)
        if give is not None:
            give(store)
        if own or is_of_0_1_0:
            if not own:
                _take_over_the_rest(store)
            changed = take_over(store, found)
        else:
            _adopt(store, found)
        store._act(lambda: store._rows("save mirrored", number=-1))
    finally:
        store.close()
    _in_one_file(new, wait_seconds, shared=shared)
    os.rename(new, f"{path}{_WHOLE}")
    sync_directory(home)
    return Made(jobs=len(found), unreadable=unreadable, changed=changed)


def put_in_place(home: str, path: str) -> str | None:
    """The finished database gets its name. Another one that has it is kept aside; where."""
    _keep_older_mam_out(home)
    kept = None
    for suffix in _BESIDE:  # a log that stays behind would be read into the new one
        if os.path.exists(path + suffix):
            if kept is None:
                make_directories(os.path.join(home, ASIDE))
                kept = os.path.join(home, ASIDE, f"{DATABASE}.{os.urandom(4).hex()}")
            os.rename(path + suffix, kept + suffix)
    sync_directory(home)
    os.rename(f"{path}{_WHOLE}", path)
    sync_directory(home)
    _put_away(home)
    return kept


def write_files(directory: str, clock: Clock, wait_seconds: float) -> None:
    store = _Taking(directory, clock, wait_seconds)
    try:
        store._act(lambda: None)
    finally:
        store.close()


def _is_on_network(directory: str) -> bool:
    from mam.stores.sqlite.place import network_file_system

    return network_file_system(directory) is not None


def _records(store: FilesStore) -> tuple[list[Found], list[str]]:
    found, unreadable = [], []
    records = store._files().records
    for job_id in records.ids():
        try:
            found.append(records.read(job_id))
        except BadRecord as bad:
            unreadable.append(f"{job_id}.json: {bad.facts['problem']}")
        except FileNotFoundError:
            continue
    return found, unreadable


# -- records of the old scripts ----------------------------------------------------------------------------------------


def _adopt(store: FilesStore, found: list[Found]) -> None:
    """Numbered by the time that they give for their making, then by id."""
    found.sort(key=lambda one: (parse_time(one.job.created_at), one.job.job_id))
    for chunk in _steps(found):
        store._act(_adopt_some, store, chunk)


def _adopt_some(store: FilesStore, chunk: list[Found]) -> None:
    moment = store._moment()
    for one in chunk:
        if one.secrets:
            store._secrets.keep(one.job.job_id, one.secrets)
        insert_new(store, one.job, moment)


# -- records that mam wrote itself -------------------------------------------------------------------------------------


def take_over(store: FilesStore, found: list[Found]) -> list[str]:
    """As they are, with their numbers and events, but for those of the archive; what is other now."""
    found = [one for one in found if not store._rows("archived", job_id=one.job.job_id)]
    jobs, changed = _distinct(_numbered([one.job for one in found]))
    for one in found:
        if one.secrets:
            store._act(store._secrets.keep, one.job.job_id, one.secrets)
    records = store._files().records
    for chunk in _steps(jobs):
        store.take_in([Kept(job=job, events=whole_events(records.events(job.job_id), job.last_seq)) for job in chunk])
    return changed


def _distinct(jobs: list[Job]) -> tuple[list[Job], list[str]]:
    """Of several that have one key, retry one job or run under one exclusive key, the first keeps it."""
    taken: dict[tuple[str, str], str] = {}
    made, changed = [], []
    for job in jobs:
        claims = [("key", job.key), ("retry_of", job.retry_of), ("status", job.exclusive if job.status is RUNNING else None)]
        for field, value in claims:
            if value is None:
                continue
            holder = taken.setdefault((field, value), job.job_id)
            if holder != job.job_id:
                job = job.replace(**{field: PENDING if field == "status" else None})
                changed.append(f"{job.job_id} has lost its {field} to job {holder}, which has the same")
        made.append(job)
    return made, changed


def _numbered(jobs: list[Job]) -> list[Job]:
    """Each with a number of its own; records that have none, or that of another, come behind the others."""
    jobs.sort(key=lambda job: (job.number == 0, job.number, parse_time(job.created_at), job.job_id))
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
    from mam.stores.beside import read_whole
    from mam.stores.files.old_archive import read_archive

    for chunk in _steps(list(read_archive(os.path.join(store.home, "archive.sqlite")))):
        store.take_in(chunk, archived=True)
    from mam.jobs.pause import pause_of

    for fields in read_whole(os.path.join(store.home, "pauses")) or []:
        store.pause(pause_of(fields))
    generations = read_whole(os.path.join(store.home, "generations")) or {}
    for agent_id, known in generations.items():
        store._act(lambda: store._rows(  # noqa: B023
            "announce", agent_id=agent_id, generation_id=known["current"],  # noqa: B023
            superseded=to_bytes(known["superseded"]).decode(),  # noqa: B023
        ))  # fmt: skip


# -- names -------------------------------------------------------------------------------------------------------------


def _in_one_file(path: str, wait_seconds: float, *, shared: bool) -> None:
    """What is still in the log goes into the database, so that one rename moves all of it."""
    if not shared:
        return
    database = open_database(path, wait_seconds)
    try:
        database.execute("PRAGMA journal_mode = DELETE").fetchall()
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
