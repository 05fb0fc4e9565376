"""The port on files: the SQLite engine inside the directory, and a readable file for each job beside it.

The database `.store/registry.db` is the source of truth. Every write holds `.lock`, as the old scripts did, which also
keeps the record files in order (mirror.py). Reads ask the database and take no lock.
"""

from __future__ import annotations

import json
import os

from mam.clock import iso_second, parse_time
from mam.errors import BadRecord
from mam.stores.beside import make_directories
from mam.stores.files.lock import WAIT_SECONDS, registry_lock
from mam.stores.files.mirror import Mirror, Shown, events_in
from mam.stores.files.opening import check_directory, opened, unavailable, with_advice
from mam.stores.files.records import Stamp
from mam.stores.secrets import Secrets
from mam.stores.sql.rows import row_of
from mam.stores.sqlite.place import network_file_system
from mam.stores.sqlite.store import SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    import apsw

    from mam.clock import Clock, Moment
    from mam.errors import StoreUnavailable
    from mam.jobs.change import Line
    from mam.jobs.record import Job, Json
    from mam.stores.port import Problem
    from mam.stores.sql.rows import Row

    T = TypeVar("T")

STORE, DATABASE = ".store", "registry.db"
RECENT_SECONDS = 600
"""After a restart of the machine the files of jobs that changed so long before its end are looked at: no kernel keeps
what was written for that long from the disk."""

SAVED_EVERY = 1000
"""Entries of the journal after which a process notes how far the files show it: what the next process looks through if
this one is killed."""

NEVER_MIRRORED = -1
"""`mirrored_upto` of a database that was made from the record files, which are still as they were found."""


def create_files_store(path: str) -> bool:
    """Makes the directory of a registry if there is none; whether it made one."""
    return make_directories(os.path.abspath(path))


class FilesStore(SqliteStore):
    """A registry in a directory of one host. Threads and processes may share it; a fork opens its own."""

    def __init__(self, path: str, clock: Clock | None = None, lock_wait_seconds: float = WAIT_SECONDS) -> None:
        directory = os.path.realpath(path)
        self._directory = directory
        self._identity: tuple[int, int] | None = None
        """Which file the database is; None before it is open."""
        self._mirror: Mirror | None = None
        self._shown: dict[str, Shown] = {}
        """What the open transaction changes, as its files are to show it."""
        self._taken: set[str] = set()
        """Jobs whose record files the open transaction takes over."""
        self._mirrored = self._saved = NEVER_MIRRORED
        """The last entry of the journal that this process knows to be mirrored, and the last that it noted as such."""
        self._on_network = network_file_system(directory) is not None
        super().__init__(os.path.join(directory, STORE, DATABASE), clock, lock_wait_seconds)
        self.address = directory
        if self._rows("mirrored upto")[0][0] == NEVER_MIRRORED and self._can_write():
            self._act(lambda: None)  # which writes the record files
        self._let_go_of_network()

    @property
    def home(self) -> str:  # type: ignore[override]
        return os.path.join(self._directory, STORE)

    # -- transactions --------------------------------------------------------------------------------------------------

    def _act(self, do: Callable[..., T], *given: Any) -> T:
        with self._threads, self._lock():
            self._check_identity()
            try:
                return super()._act(do, *given)
            except OSError as error:
                raise unavailable(self._directory, error) from None
            finally:
                self._let_go_of_network()

    def _rows(self, query: str, **values: Any) -> list[Any]:
        if not self._on_network or not self._can_write():
            with self._threads:
                self._check_identity()
                return super()._rows(query, **values)
        with self._threads, self._lock():
            try:
                return super()._rows(query, **values)
            finally:
                self._let_go_of_network()

    def _lock(self) -> registry_lock:
        return registry_lock(self._directory, self._wait_seconds, is_real=True)

    def _let_go_of_network(self) -> None:
        """On a network file system a connection lives only as long as the lock is held."""
        if self._on_network and not self._is_within():
            self._let_go()

    def _check_identity(self) -> None:
        """A registry that was removed while it was open is missing; one that was made in its place is another one."""
        if self._identity is not None and not self._is_within() and _identity_of(self._path) != self._identity:
            self._let_go()
            self._mirrored, self._boot_id = NEVER_MIRRORED, None

    def _is_within(self) -> bool:
        return self._cursor is not None and self._cursor.connection.in_transaction

    def _can_write(self) -> bool:
        return os.access(self._directory, os.W_OK)

    def _begin(self) -> None:
        self._shown, self._taken = {}, set()
        super()._begin()
        self._finish_mirror()

    def _commit(self) -> None:
        mirror = self._files()
        try:
            mirror.prepare(list(self._shown.values()), self.journal_id)
            last = int(self.end()) if self._shown else self._mirrored
            super()._commit()
        except BaseException:
            mirror.discard()
            raise
        try:
            mirror.put()
            self._mirrored = last
        except OSError:
            self._mirrored = NEVER_MIRRORED  # the act has happened; the next one finishes its files

    def _note(self, job: Job, version: int, fields: Json | None, lines: tuple[Line, ...]) -> None:
        super()._note(job, version, fields, lines)
        before = self._shown.get(job.job_id)
        events = events_in(lines)
        is_migrated = lines[0]["event"] == "migrated"
        earlier = [] if is_migrated or before is None else before.events
        is_new = version == 1 or (before is not None and before.is_new)
        is_taken = is_migrated or job.job_id in self._taken
        self._shown[job.job_id] = Shown(
            job=job, version=version, events=earlier + events, is_new=is_new, is_taken=is_taken
        )

    # -- the mirror ----------------------------------------------------------------------------------------------------

    def _files(self) -> Mirror:
        if self._mirror is None:
            self._mirror = Mirror(self._directory, self.home)
        return self._mirror

    def _finish_mirror(self) -> None:
        """What a killed process has committed and not shown in files yet."""
        last = int(self.end())
        if last == self._mirrored and last - self._saved < SAVED_EVERY:
            return
        if last != self._mirrored:
            ((upto,),) = self._rows("mirrored upto")
            for (job_id,) in self._rows("jobs since", number=max(upto, self._mirrored)):
                self._repair(job_id, is_taken=upto == NEVER_MIRRORED)
        self._rows("save mirrored", number=last)
        self._mirrored = self._saved = last

    def _repair(self, job_id: str, *, is_taken: bool = False, is_sure: bool = True) -> None:
        rows = self._rows("job", job_id=job_id)
        if not rows:
            self._files().remove_own(job_id)
            return
        try:
            row = row_of(rows[0], self.address)
        except BadRecord:
            return  # `problems` reports it; its file shows what mam last knew
        stamp = Stamp(epoch=self.journal_id, version=row.version)
        self._files().repair(row.job, stamp, lambda: self.events(job_id), is_taken=is_taken, is_sure=is_sure)

    def _go_by_this_boot(self, moment: Moment) -> None:
        """After a power cut the files of the last acts may be old or empty."""
        is_other = self._rows("boot")[0][0] not in ("", moment.boot_id)
        super()._go_by_this_boot(moment)
        latest = self._rows("latest update")[0][0] if is_other else None
        if latest is not None:
            since = iso_second(parse_time(latest) - RECENT_SECONDS * 1000)
            for (job_id,) in self._rows("updated since", since=since):
                self._repair(job_id, is_sure=False)

    # -- what other programs wrote -------------------------------------------------------------------------------------

    def problems(self) -> list[Problem]:
        from mam.stores.files.adopting import differences

        return super().problems() + differences(self)

    def file_problem(self, job_id: str) -> Problem | None:
        """What is odd about the record file of one job."""
        from mam.jobs.rules import is_job_id
        from mam.stores.files.adopting import difference

        return difference(self, job_id) if is_job_id(job_id) else None

    # -- the connection ------------------------------------------------------------------------------------------------

    def _open(self) -> apsw.Connection:
        check_directory(self._directory)
        if not self._can_write():
            database = opened(self._directory, self._path, self._wait_seconds, read_only=True)
        elif self._on_network:
            with self._lock():
                database = self._open_or_make()
        else:
            database = self._open_or_make()
        self._identity = _identity_of(self._path)
        return database

    def _open_or_make(self) -> apsw.Connection:
        try:
            make_directories(self.home)
            if not os.path.exists(self._path):
                self._make()
        except OSError as error:
            raise unavailable(self._directory, error) from None
        return opened(self._directory, self._path, self._wait_seconds, shared=not self._on_network)

    def _failed(self, error: apsw.Error) -> StoreUnavailable:
        return with_advice(self._directory, super()._failed(error))

    def _make(self) -> None:
        from mam.stores.files.making import make_database

        with self._lock():
            if os.path.exists(self._path):
                return
            made = make_database(self._directory, self._path, self.clock, self._wait_seconds)
        if made.jobs:
            from mam.telling import tell

            left = f"; left alone: {made.left_alone}" if made.unreadable else ""
            tell("mam.store", f"adopted {made.jobs} jobs from the record files in {self._directory}{left}")

    def _let_go(self) -> None:
        super()._let_go()
        if self._mirror is not None:
            self._mirror.close()
            self._mirror = None

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._mirrored = NEVER_MIRRORED

    @property
    def _secrets(self) -> Secrets:
        return Secrets(os.path.join(self.home, "secrets"))

    def _shown_again(self, row: Row) -> None:
        """Its file is written anew with this act, though nothing of the job changes."""
        job_id = row.job.job_id
        self._shown[job_id] = Shown(
            job=row.job, version=row.version, events=[], is_new=False, is_taken=job_id in self._taken
        )

    def versions(self, job_ids: Sequence[str]) -> dict[str, int]:
        """The version of each of these jobs that is in the registry."""
        return dict(self._rows("versions", job_ids=json.dumps(list(job_ids))))


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
