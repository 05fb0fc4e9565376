"""The port on files: the SQLite engine inside the directory, and a readable file for each job beside it.

The database `.store/registry.db` is the source of truth. Every write holds `.lock`, as the old scripts did, which also
keeps the record files in order (mirror.py). Reads ask the database and take no lock.
"""

from __future__ import annotations

import json
import os

import apsw

from mam.errors import BadRecord
from mam.jobs.input_rules import is_job_id
from mam.stores.files.connection import check_directory, damaged_database, open_connection, unavailable, with_advice
from mam.stores.files.lock import WAIT_SECONDS, registry_lock
from mam.stores.files.mirror import Mirror, RecordUpdate, events_in_lines
from mam.stores.files.records import RecordStamp
from mam.stores.private_files import make_directories
from mam.stores.secrets import Secrets
from mam.stores.sql.rows import parse_row
from mam.stores.sqlite.file_system import network_file_system
from mam.stores.sqlite.store import SqliteStore
from mam.util.clock import iso_second, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from mam.errors import StoreUnavailable
    from mam.jobs.change import AuditRecord
    from mam.jobs.record import Job, Json
    from mam.stores.port import Problem
    from mam.stores.sql.rows import Row
    from mam.util.clock import Clock, Moment

    T = TypeVar("T")

STORE, DATABASE = ".store", "registry.db"
RECENT_SECONDS = 600
"""After a restart of the machine the files of jobs that changed so long before its end are looked at: no kernel keeps
what was written for that long from the disk."""

RECENT_ENTRIES = 500

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
        self._mirror: Mirror | None = None
        self._updates: dict[str, RecordUpdate] = {}
        """What the open transaction changes, as its files are to show it."""
        self._adopting: set[str] = set()
        """Jobs whose record files the open transaction takes over."""
        self._mirrored_upto = self._saved_upto = NEVER_MIRRORED
        """The last entry of the journal that this process knows to be mirrored, and the last that it noted as such."""
        self._holds_lock = False
        self._on_network = network_file_system(directory) is not None
        super().__init__(os.path.join(directory, STORE, DATABASE), clock, lock_wait_seconds)
        self.address = directory
        if self._rows("mirrored upto")[0][0] == NEVER_MIRRORED and self._can_write():
            self._in_transaction(lambda: None)  # which writes the record files
        self._disconnect_network()

    @property
    def home(self) -> str:  # type: ignore[override]
        return os.path.join(self._directory, STORE)

    # -- transactions --------------------------------------------------------------------------------------------------

    def _in_transaction(self, do: Callable[..., T], *given: Any) -> T:
        with self._threads, self._lock():
            was_acting, self._holds_lock = self._holds_lock, True
            try:
                if self._is_read_only():
                    self._disconnect()  # the disk may have room again
                return super()._in_transaction(do, *given)
            except OSError as error:
                raise unavailable(self._directory, error) from None
            finally:
                self._holds_lock = was_acting
                self._disconnect_network()

    def _rows(self, query: str, **values: Any) -> list[Any]:
        if not self._on_network or not self._can_write():
            return super()._rows(query, **values)
        with self._threads, self._lock():
            try:
                return super()._rows(query, **values)
            finally:
                self._disconnect_network()

    def _lock(self) -> registry_lock:
        return registry_lock(self._directory, self._wait_seconds, is_real=True)

    def _disconnect_network(self) -> None:
        """On a network file system a connection lives only as long as the lock is held."""
        if self._on_network and not self._is_within():
            self._disconnect()

    def _is_within(self) -> bool:
        return self._cursor is not None and self._cursor.connection.in_transaction

    def _can_write(self) -> bool:
        return os.access(self._directory, os.W_OK)

    def _begin(self) -> None:
        self._updates, self._adopting = {}, set()
        super()._begin()
        self._finish_earlier_acts()

    def _commit(self) -> None:
        mirror = self._open_mirror()
        try:
            mirror.prepare(list(self._updates.values()), self.journal_id)
            last = int(self.end_offset()) if self._updates else self._mirrored_upto
            super()._commit()
        except BaseException:
            mirror.discard()
            raise
        try:
            mirror.publish()
            self._mirrored_upto = last
        except OSError:  # the act has happened; the next one finishes its files, through another descriptor
            self._mirrored_upto = NEVER_MIRRORED
            self._close_mirror()

    def _append_entry(self, job: Job, version: int, fields: Json | None, lines: tuple[AuditRecord, ...]) -> None:
        super()._append_entry(job, version, fields, lines)
        before = self._updates.get(job.job_id)
        events = events_in_lines(lines)
        is_migrated = lines[0]["event"] == "migrated"
        earlier = [] if is_migrated or before is None else before.events
        is_new = version == 1 or (before is not None and before.is_new)
        is_adopted = is_migrated or job.job_id in self._adopting
        self._updates[job.job_id] = RecordUpdate(
            job=job, version=version, events=earlier + events, is_new=is_new, is_adopted=is_adopted
        )

    # -- the mirror ----------------------------------------------------------------------------------------------------

    def _open_mirror(self) -> Mirror:
        if self._mirror is None:
            self._mirror = Mirror(self._directory, self.home)
        return self._mirror

    def _finish_earlier_acts(self) -> None:
        """What a killed process has committed and not shown in files yet."""
        last = int(self.end_offset())
        if last == self._mirrored_upto and last - self._saved_upto < SAVED_EVERY:
            return
        if last != self._mirrored_upto:
            ((upto,),) = self._rows("mirrored upto")
            for (job_id,) in self._rows("jobs since", number=max(upto, self._mirrored_upto)):
                self._repair_files(job_id, is_adopted=upto == NEVER_MIRRORED)
        self._rows("save mirrored", number=last)
        self._mirrored_upto = self._saved_upto = last

    def _repair_files(self, job_id: str, *, is_adopted: bool = False, trust_stamp: bool = True) -> None:
        rows = self._rows("job", job_id=job_id)
        if type(job_id) is not str or not is_job_id(job_id):
            raise damaged_database(self._directory)
        if not rows:
            self._open_mirror().remove_job(job_id)
            return
        try:
            row = parse_row(rows[0], self.address)
        except BadRecord:
            return  # `problems` reports it; its file shows what mam last knew
        stamp = RecordStamp(epoch=self.journal_id, version=row.version)
        self._open_mirror().repair(
            row.job, stamp, lambda: self.events(job_id), is_adopted=is_adopted, trust_stamp=trust_stamp
        )

    def _switch_boot(self, moment: Moment) -> None:
        """After a power cut the files of the last acts may be old, empty, or there again."""
        is_other = self._rows("boot")[0][0] not in ("", moment.boot_id)
        super()._switch_boot(moment)
        if is_other:
            for job_id in self._recently_changed():
                self._repair_files(job_id, trust_stamp=False)

    def _recently_changed(self) -> set[str]:
        """Jobs of the last entries of the journal; at least some hundred, since the clock may have jumped meanwhile."""
        found: set[str] = set()
        since, below = "", int(self.end_offset()) + 1
        while rows := self._rows("entries before", below=below, limit=RECENT_ENTRIES):
            for number, job_id, at in rows:
                since = since or (iso_second(parse_time(at) - RECENT_SECONDS * 1000) if at else "")
                below = number
                found.add(job_id)
            if at < since:
                break
        return found

    # -- what other programs wrote -------------------------------------------------------------------------------------

    def ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
        found = super().ids_with_prefix(prefix, limit)
        if not found:
            self._check_not_restored(prefix)
        return found

    def _check_not_restored(self, job_id: str) -> None:
        """A record file of this very registry, of a job that it does not have: the database is older than its files."""
        if not is_job_id(job_id) or not self._open_mirror().mirrored_version(job_id, self.journal_id):
            return
        if not self._rows("archived", job_id=job_id):
            raise self._open_mirror().older_database(job_id)

    def problems(self) -> list[Problem]:
        from mam.stores.files.adopt import differences

        return super().problems() + differences(self)

    def file_problem(self, job_id: str) -> Problem | None:
        """What is odd about the record file of one job."""
        from mam.jobs.input_rules import is_job_id
        from mam.stores.files.adopt import difference

        return difference(self, job_id) if is_job_id(job_id) else None

    # -- the connection ------------------------------------------------------------------------------------------------

    def _open(self) -> apsw.Connection:
        check_directory(self._directory)
        if not self._can_write():
            return open_connection(self._directory, self._path, self._wait_seconds, read_only=True)
        if self._on_network:
            with self._lock():
                return self._open_or_build()
        return self._open_or_build()

    def _open_or_build(self) -> apsw.Connection:
        try:
            make_directories(self.home)
            if not os.path.exists(self._path):
                self._build()
        except OSError as error:
            raise unavailable(self._directory, error) from None
        return open_connection(self._directory, self._path, self._wait_seconds, shared=not self._on_network)

    def _failed(self, error: apsw.Error) -> StoreUnavailable:
        told = super()._failed(error)
        if isinstance(error, apsw.ReadOnlyError) and os.access(self._path, os.W_OK) and not self._is_read_only():
            return damaged_database(self._directory)  # a bit of its header is wrong
        return with_advice(self._directory, told)

    def _is_read_only(self) -> bool:
        return self._cursor is not None and bool(self._cursor.connection.open_flags & apsw.SQLITE_OPEN_READONLY)

    def _build(self) -> None:
        from mam.stores.files.create import build_missing_database

        with self._lock():
            if os.path.exists(self._path):
                return
            made = build_missing_database(self._directory, self._path, self.clock, self._wait_seconds)
        if made.jobs:
            from mam.util.notices import warn

            left = f"; left alone: {made.left_alone}" if made.unreadable else ""
            warn("mam.store", f"adopted {made.jobs} jobs from the record files in {self._directory}{left}")

    def _disconnect(self) -> None:
        super()._disconnect()
        self._mirrored_upto = self._saved_upto = NEVER_MIRRORED  # the next database may be another one
        self._close_mirror()

    def _close_mirror(self) -> None:
        if self._mirror is not None:
            self._mirror.close()
            self._mirror = None

    def _close_after_disk_error(self) -> None:
        """Under the lock, what only the log holds goes into the database now; see there."""
        if self._cursor is not None and self._holds_lock:
            self._cursor.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        super()._close_after_disk_error()

    @property
    def _secrets(self) -> Secrets:
        return Secrets(os.path.join(self.home, "secrets"))

    def _rewrite_record(self, row: Row) -> None:
        """Its file is written anew with this act, though nothing of the job changes."""
        job_id = row.job.job_id
        self._updates[job_id] = RecordUpdate(
            job=row.job, version=row.version, events=[], is_new=False, is_adopted=job_id in self._adopting
        )

    def versions(self, job_ids: Sequence[str]) -> dict[str, int]:
        """The version of each of these jobs that is in the registry."""
        return dict(self._rows("versions", job_ids=json.dumps(list(job_ids))))
