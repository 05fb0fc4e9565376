"""The port on files: SQLite inside the directory, and two readable files for each job beside it.

The database `.store/registry.db` is the source of truth; the record files mirror it (mirror.py, records.py). Readers
ask the database and take no lock. Every act is one transaction under `.lock`, in this order:

    _in_transaction         takes `.lock`
      _begin                begins the transaction
        _finish_earlier_acts  checks that the database did not go back, and writes the record files of acts whose
                              writer was killed
      the act itself        changes rows; `_append_entry` collects one RecordUpdate for each job
      _commit               Mirror.prepare (temporary files), COMMIT, Mirror.publish (event logs, renames), note_end
    _in_transaction         wakes the processes that wait, releases `.lock`
"""

from __future__ import annotations

import json
import os

import apsw

from mam.errors import BadRecord, StoreOutdated
from mam.jobs.input_rules import is_job_id
from mam.stores.files.connection import check_directory, damaged_database, open_connection, unavailable, with_advice
from mam.stores.files.lock import WAIT_SECONDS, note_end, noted_end, registry_lock
from mam.stores.files.mirror import Mirror, RecordUpdate, events_in_lines, older_database
from mam.stores.files.records import RecordStamp
from mam.stores.private_files import make_directories
from mam.stores.secrets import Secrets
from mam.stores.sql.rows import parse_row
from mam.stores.sqlite.database import create_database
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
RECENT_SECONDS, RECENT_ENTRIES = 600, 500
"""After a restart of the machine mam checks the files of the jobs that changed in this time before it, and at least of
this many entries. No kernel keeps written data from the disk for so long."""

SAVE_EVERY = 1000
"""Entries after which a process saves `mirrored_upto`. After a kill, the next process checks at most so many."""

NEVER_MIRRORED = -1
"""`mirrored_upto` of a database that was built from the record files, which mam has not written yet."""


def create_files_store(path: str) -> bool:
    """Creates the directory of a registry if there is none. Returns whether it did."""
    return make_directories(os.path.abspath(path))


class FilesStore(SqliteStore):
    """A registry in a directory of one host. Threads and processes may share it; a fork opens its own connection."""

    def __init__(self, path: str, clock: Clock | None = None, lock_wait_seconds: float = WAIT_SECONDS) -> None:
        directory = os.path.realpath(path)
        self._directory = directory
        self._mirror: Mirror | None = None
        self._updates: dict[str, RecordUpdate] = {}
        """The record files that the open transaction has to write, by job id."""
        self._adopting: set[str] = set()
        """Jobs whose record files the open transaction adopts."""
        self._mirrored_upto = self._saved_upto = NEVER_MIRRORED
        """The last entry whose files are written, as far as this process knows, and the last value that it saved."""
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

    @property
    def _outputs_directory(self) -> str:
        return os.path.join(self.home, "outputs")

    # -- one act, in the order of its steps ----------------------------------------------------------------------------

    def _in_transaction(self, do: Callable[..., T], *given: Any) -> T:
        with self._threads, self._lock():
            held_before, self._holds_lock = self._holds_lock, True
            try:
                if self._is_read_only():
                    self._disconnect()  # the disk may have room again
                return super()._in_transaction(do, *given)
            except OSError as error:
                raise unavailable(self._directory, error) from None
            finally:
                self._holds_lock = held_before
                self._disconnect_network()

    def _lock(self) -> registry_lock:
        return registry_lock(self._directory, self._wait_seconds, is_real=True)

    def _begin(self) -> None:
        self._updates, self._adopting = {}, set()
        super()._begin()
        self._finish_earlier_acts()

    def _finish_earlier_acts(self) -> None:
        """Writes the files of acts that a killed process committed, and saves `mirrored_upto` now and then."""
        last = int(self.end_offset())
        self._check_end(last)
        if last == self._mirrored_upto and last - self._saved_upto < SAVE_EVERY:
            return
        if last != self._mirrored_upto:
            ((upto,),) = self._rows("mirrored upto")
            for (job_id,) in self._rows("jobs since", number=max(upto, self._mirrored_upto)):
                self._repair_files(job_id, is_adopted=upto == NEVER_MIRRORED)
        self._rows("save mirrored", number=last)
        self._mirrored_upto = self._saved_upto = last

    def _check_end(self, last: int) -> None:
        """If the journal ends before the entry that the lock file names, the database is older than its files: a backup
        was restored, or its log was lost."""
        noted = noted_end(self._directory)
        if noted is not None and noted[1] > last and noted[0] == self.journal_id:
            raise older_database(self._directory, f"it ends at entry {last}, they at entry {noted[1]}")

    def _append_entry(self, job: Job, version: int, fields: Json | None, lines: tuple[AuditRecord, ...]) -> None:
        """Also notes that the files of this job have to be written. A second change of the job adds its events."""
        super()._append_entry(job, version, fields, lines)
        before = self._updates.get(job.job_id)
        is_migrated = lines[0]["event"] == "migrated"
        earlier = [] if is_migrated or before is None else before.events
        self._updates[job.job_id] = RecordUpdate(
            job=job,
            version=version,
            events=earlier + events_in_lines(lines),
            is_new=version == 1 or (before is not None and before.is_new),
            is_adopted=is_migrated or job.job_id in self._adopting,
        )

    def _rewrite_record(self, row: Row) -> None:
        """Has the open transaction write the record file of a job that it does not change."""
        job_id = row.job.job_id
        self._updates[job_id] = RecordUpdate(
            job=row.job, version=row.version, events=[], is_new=False, is_adopted=job_id in self._adopting
        )

    def _commit(self) -> None:
        mirror, epoch = self._open_mirror(), self.journal_id
        try:
            mirror.prepare(list(self._updates.values()), epoch)
            last = int(self.end_offset()) if self._updates else self._mirrored_upto
            super()._commit()
        except BaseException:
            mirror.discard()
            raise
        try:
            mirror.publish()
            if self._updates:
                note_end(self._directory, epoch, last)
            self._mirrored_upto = last
        except OSError:  # the act is committed: the next one writes its files, through another descriptor
            self._mirrored_upto = NEVER_MIRRORED
            self._close_mirror()

    # -- files that a killed writer or a power cut left behind ---------------------------------------------------------

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
            return  # `problems` reports it; the file keeps its last readable state
        stamp = RecordStamp(epoch=self.journal_id, version=row.version)
        self._open_mirror().repair(
            row.job, stamp, lambda: self.events(job_id), is_adopted=is_adopted, trust_stamp=trust_stamp
        )

    def _switch_boot(self, moment: Moment) -> None:
        """After a power cut, files of the last acts may be old or empty, or removed files may be back."""
        is_other = self._rows("boot")[0][0] not in ("", moment.boot_id)
        super()._switch_boot(moment)
        if is_other:
            for job_id in self._recently_changed():
                self._repair_files(job_id, trust_stamp=False)

    def _recently_changed(self) -> set[str]:
        """Jobs of the last entries; a page of them at least, since the clock may have jumped."""
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

    def _open_mirror(self) -> Mirror:
        if self._mirror is None:
            self._mirror = Mirror(self._directory, self.home)
        return self._mirror

    def _close_mirror(self) -> None:
        if self._mirror is not None:
            self._mirror.close()
            self._mirror = None

    # -- record files that another program wrote -----------------------------------------------------------------------

    def ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
        found = super().ids_with_prefix(prefix, limit)
        if not found:
            self._check_not_restored(prefix)
        return found

    def _check_not_restored(self, job_id: str) -> None:
        """If mam wrote a record file from this database and the database lacks the job, the database is older than its
        files: a backup was restored."""
        if not is_job_id(job_id) or not self._open_mirror().mirrored_version(job_id, self.journal_id):
            return
        if not self._rows("archived", job_id=job_id):
            raise self._open_mirror().older_database(job_id)

    def problems(self) -> list[Problem]:
        from mam.stores.files.adopt import differences

        return super().problems() + differences(self)

    def file_problem(self, job_id: str) -> Problem | None:
        """How the record file of one job differs from what mam wrote."""
        from mam.stores.files.adopt import difference

        return difference(self, job_id) if is_job_id(job_id) else None

    def versions(self, job_ids: Sequence[str]) -> dict[str, int]:
        """The version of each of these jobs that is in the registry."""
        return dict(self._rows("versions", job_ids=json.dumps(list(job_ids))))

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
        try:
            return self._open_file()
        except StoreOutdated:
            with self._lock():
                create_database(self._path, "", self._wait_seconds, shared=not self._on_network)
            return self._open_file()

    def _open_file(self) -> apsw.Connection:
        return open_connection(self._directory, self._path, self._wait_seconds, shared=not self._on_network)

    def _build(self) -> None:
        from mam.stores.files.create import build_missing_database

        with self._lock():
            if os.path.exists(self._path):
                return
            built = build_missing_database(self._directory, self._path, self.clock, self._wait_seconds)
        if built.jobs:
            from mam.util.notices import warn

            left = f"; left alone: {built.left_alone}" if built.unreadable else ""
            warn("mam.store", f"adopted {built.jobs} jobs from the record files in {self._directory}{left}")

    def _can_write(self) -> bool:
        return os.access(self._directory, os.W_OK)

    def _is_read_only(self) -> bool:
        return self._cursor is not None and bool(self._cursor.connection.open_flags & apsw.SQLITE_OPEN_READONLY)

    def _rows(self, query: str, **values: Any) -> list[Any]:
        if not self._on_network or not self._can_write():
            return super()._rows(query, **values)
        with self._threads, self._lock():
            try:
                return super()._rows(query, **values)
            finally:
                self._disconnect_network()

    def _disconnect_network(self) -> None:
        """On a network file system a connection lives only as long as the lock is held."""
        is_within = self._cursor is not None and self._cursor.connection.in_transaction
        if self._on_network and not is_within:
            self._disconnect()

    def _disconnect(self) -> None:
        super()._disconnect()
        self._mirrored_upto = self._saved_upto = NEVER_MIRRORED  # the next database may be another one
        self._close_mirror()

    def _translate_error(self, error: apsw.Error) -> StoreUnavailable:
        problem = super()._translate_error(error)
        if isinstance(error, apsw.ReadOnlyError) and os.access(self._path, os.W_OK) and not self._is_read_only():
            return damaged_database(self._directory)  # a bit of its header is wrong
        return with_advice(self._directory, problem)

    def _close_after_disk_error(self) -> None:
        """A process that holds the lock may checkpoint, so closing moves the durable part of the log."""
        if self._cursor is not None and self._holds_lock:
            self._cursor.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        super()._close_after_disk_error()

    @property
    def _secrets(self) -> Secrets:
        return Secrets(os.path.join(self.home, "secrets"))
