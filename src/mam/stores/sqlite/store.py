"""The port on SQLite: each act is one immediate transaction, durable when it commits."""

from __future__ import annotations

import os
from _thread import RLock, get_ident
from weakref import WeakSet

import apsw

from mam.errors import StoreUnavailable
from mam.stores.secrets import Secrets
from mam.stores.sql.queries import FIXED, SHARED, load_queries
from mam.stores.sql.rows import COLUMNS, parse_row
from mam.stores.sql.store import SqlStore
from mam.stores.sqlite.database import create_database, open_database, sqlite_address, unavailable
from mam.stores.sqlite.wake_file import WakeFile
from mam.util.clock import SystemClock
from mam.util.encoding import to_json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from mam.jobs.change import AuditRecord
    from mam.jobs.record import Job, Json
    from mam.stores.file_watch import DirectoryWatch
    from mam.stores.interest import Interest
    from mam.stores.outputs import Outputs
    from mam.util.clock import Clock, Moment

    T = TypeVar("T")

WAIT_SECONDS = 10.0
_PLACED = ("blocked", "asking", "due_boot", "due_ms", "host")
"""Columns that mam computes from the job."""
_NAMES = [*(name for name in COLUMNS if name not in ("prompt", "version")), *_PLACED]
_UPDATED = [name for name in _NAMES if name not in (*FIXED, "label", "agent", "priority")]
"""SQLite rewrites every index whose columns a statement names; the order of the queue has a query of its own."""

_PARTS = {
    "schema": "main",
    "jobs": "main.job JOIN main.prompt USING (number)",
    "prompt": "JOIN main.prompt USING (number)",
    "open": "(status = 'pending' OR status = 'waiting' OR status = 'running')",
    "ended": "(status = 'completed' OR status = 'error' OR status = 'cancelled')",
    "failed": "(status = 'error' OR status = 'cancelled')",
    "lock": "",
    "skip locked": "",
    "columns": ", ".join(COLUMNS),
    "names": ", ".join(_NAMES),
    "values": ", ".join(f":{name}" for name in _NAMES),
    "set": ", ".join(f"{name} = :{name}" for name in _UPDATED),
}
QUERIES = {**load_queries(SHARED, **_PARTS), **load_queries(__file__, **_PARTS)}

_open_stores: WeakSet[SqliteStore] = WeakSet()


def _before_fork() -> None:
    for store in list(_open_stores):
        store._disconnect()


def _in_child() -> None:
    for store in list(_open_stores):
        store._reset_after_fork()


os.register_at_fork(before=_before_fork, after_in_child=_in_child)


def create_sqlite_store(path: str, lock_wait_seconds: float = WAIT_SECONDS) -> bool:
    """Creates the database or upgrades an older one. Returns whether it did either."""
    return create_database(os.path.realpath(path), SystemClock().new_id(), lock_wait_seconds)


class SqliteStore(SqlStore):
    """A registry in one database file of one host, shared by threads and processes; a fork opens its own connection."""

    def __init__(self, path: str, clock: Clock | None = None, lock_wait_seconds: float = WAIT_SECONDS) -> None:
        super().__init__()
        self._path = os.path.realpath(path)
        self.address = sqlite_address(self._path)
        self.clock = clock or SystemClock()
        self._wait_seconds = lock_wait_seconds
        self._wake_file = WakeFile(f"{self._path}-bell")
        self._boot_id: str | None = None
        """The boot by whose clock the leases in the database are judged."""
        self._threads = RLock()
        self._watches: dict[int, DirectoryWatch] = {}
        """One for each waiting thread: an event that one reads is lost to the others."""
        self._file: tuple[int, int] | None = None
        """Device and inode of the open database."""
        self._cursor: apsw.Cursor | None = None
        self._outputs: Outputs | None = None
        self._connect()
        _open_stores.add(self)

    # -- transactions ------------------------------------------------------------------------------------------------

    def _in_transaction(self, do: Callable[..., T], *given: Any) -> T:
        with self._threads:
            self._disconnect_if_replaced()
            database = (self._cursor or self._connect()).connection
            if database.in_transaction:  # a nested act is a part of the outer one
                return do(*given)
            self._must_wake = False
            try:
                self._begin()
                done = do(*given)
                self._commit()
            except apsw.Error as error:
                failure = self._translate_error(error)
                self._rollback(database)
                raise failure from None
            except BaseException:
                self._rollback(database)
                raise
            if self._must_wake:
                self._wake_file.wake()
            return done

    def _begin(self) -> None:
        self._run("BEGIN IMMEDIATE")
        moment = self.clock.now()
        if moment.boot_id != self._boot_id:
            self._switch_boot(moment)

    def _commit(self) -> None:
        self._run("COMMIT")

    def _rollback(self, database: apsw.Connection) -> None:
        self._boot_id = None  # the switch of the boot was rolled back too
        if self._cursor is not None and database.in_transaction:
            self._run("ROLLBACK")

    def _switch_boot(self, moment: Moment) -> None:
        """Leases of an earlier boot go by the wall clock from now on."""
        if self._rows("set boot", boot_id=moment.boot_id):
            for found in self._rows("jobs of other boots", boot_id=moment.boot_id):
                lease = parse_row(found, self.address).job.lease
                if lease is not None:
                    self._rows("use wall clock", number=found[COLUMNS.index("number")], due_ms=lease.wall_ms)
        self._boot_id = moment.boot_id

    def _run(self, statement: str) -> None:
        (self._cursor or self._connect()).execute(statement)

    def _rows(self, query: str, **values: Any) -> list[Any]:
        with self._threads:
            self._disconnect_if_replaced()
            try:
                return (self._cursor or self._connect()).execute(QUERIES[query], values).fetchall()
            except apsw.Error as error:
                raise self._translate_error(error) from None

    def _insert_row(self, values: Json) -> None:
        super()._insert_row(values)
        self._rows("insert prompt", number=values["number"], prompt=values["prompt"])

    def _now(self) -> Moment:
        return self.clock.now()

    # -- the journal -------------------------------------------------------------------------------------------------

    def _append_entry(self, job: Job, version: int, fields: Json | None, lines: tuple[AuditRecord, ...]) -> None:  # noqa: ARG002
        self._must_wake = True
        text = None if fields is None else to_json_text(fields)
        self._rows("insert entry", job=job.number, job_id=job.job_id, fields=text, lines=to_json_text(lines))

    def wait(self, offset: str, timeout: float, interest: Interest | None = None) -> bool:  # noqa: ARG002
        watch = self._watches.get(get_ident())
        if watch is None:
            from mam.stores.file_watch import DirectoryWatch, reads_of

            self._watches[get_ident()] = DirectoryWatch(os.path.dirname(self._path), reads_of(self._wake_file.name))
            return True  # an entry may have come before the watch began: the caller checks once more
        return self.end_offset() != offset or watch.wait(timeout)

    def due_in(self) -> float | None:
        if self.clock.now().boot_id != self._boot_id:
            self._in_transaction(lambda: None)  # which switches to this boot
        return super().due_in()

    # -- what attempts leave behind ------------------------------------------------------------------------------------

    @property
    def outputs(self) -> Outputs:
        if self._outputs is None:
            from mam.stores.output_files import FileOutputs

            self._outputs = FileOutputs(self, self._outputs_directory)
        return self._outputs

    @property
    def _outputs_directory(self) -> str:
        return f"{self._path}-outputs"

    # -- secrets -----------------------------------------------------------------------------------------------------

    def keep_secrets(self, job_id: str, secrets: dict[str, str]) -> None:
        try:
            self._in_transaction(self._secrets.keep, job_id, secrets)
        except OSError as error:
            why = f"its secrets cannot be kept: {error.strerror}"
            raise StoreUnavailable(store=self.address, problem=why) from None

    def secrets(self, job_id: str) -> dict[str, str]:
        try:
            return self._secrets.of(job_id)
        except OSError as error:
            why = f"its secrets cannot be read: {error.strerror}"
            raise StoreUnavailable(store=self.address, problem=why) from None

    @property
    def _secrets(self) -> Secrets:
        return Secrets(f"{self._path}-secrets")

    # -- the connection ----------------------------------------------------------------------------------------------

    def _open(self) -> apsw.Connection:
        return open_database(self._path, self._wait_seconds)

    def _connect(self) -> apsw.Cursor:
        self._cursor = self._open().cursor()
        self._file = _identity(self._path)
        return self._cursor

    def _disconnect_if_replaced(self) -> None:
        """A restored backup, a rebuilt database or another store at the same path has another inode. What this process
        wrote into the old file would be lost."""
        if self._cursor is None or self._cursor.connection.in_transaction:
            return
        if _identity(self._path) != self._file:
            self._disconnect()
            self._close_watches()  # the directory may have been moved
            self._boot_id = None

    def close(self) -> None:
        with self._threads:
            self._close_watches()
            self._wake_file.close()
            self._disconnect()

    def _close_watches(self) -> None:
        for watch in self._watches.values():
            watch.close()
        self._watches = {}

    def _disconnect(self) -> None:
        """Called before a fork too: in the child SQLite would use the parent's connection and its locks."""
        with self._threads:
            if self._cursor is not None:
                self._cursor.connection.close()
                self._cursor = None

    def _reset_after_fork(self) -> None:
        """In a forked child: the threads and the watches belong to the parent."""
        self._threads = RLock()
        self._watches = {}

    def _translate_error(self, error: apsw.Error) -> StoreUnavailable:
        if isinstance(error, apsw.IOError):
            self._close_after_disk_error()
        return unavailable(self._path, error, self._wait_seconds)

    def _close_after_disk_error(self) -> None:
        """After a disk error the log may hold a commit whose sync failed. In memory it looks complete, and the next
        process would build on it. Closing keeps what is durable and drops the rest."""
        if self._cursor is not None:
            self._cursor.connection.close(True)
            self._cursor = None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
