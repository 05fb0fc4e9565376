"""One connection for all threads: its transactions, what they write, and what becomes of them when the disk fails."""

from __future__ import annotations

import os
from _thread import RLock
from weakref import WeakSet

import apsw

from mam.clock import SystemClock
from mam.stores.sql.damage import contradiction
from mam.stores.sql.rows import entry_of
from mam.stores.sql.store import SqlStore
from mam.stores.sqlite.bell import Bell
from mam.stores.sqlite.database import address_of, open_database, unavailable
from mam.stores.sqlite.statements import STATEMENTS
from mam.writing import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from mam.clock import Clock, Moment
    from mam.errors import StoreUnavailable
    from mam.jobs.change import Change
    from mam.jobs.record import Json
    from mam.stores.sql.rows import Row

    T = TypeVar("T")

_BEGIN, _ = STATEMENTS["begin"]
_COMMIT, _ = STATEMENTS["commit"]
_NO_VALUES: dict[str, Any] = {}

_opened: WeakSet[ActingStore] = WeakSet()


def _before_fork() -> None:
    for store in list(_opened):
        store._let_go()


def _in_child() -> None:
    for store in list(_opened):
        store._begin_anew()


os.register_at_fork(before=_before_fork, after_in_child=_in_child)


class ActingStore(SqlStore):
    """The part of the store that talks to the database. Threads and processes may share it; a fork opens its own."""

    def __init__(self, path: str, clock: Clock | None, wait_seconds: float) -> None:
        super().__init__()
        self._path = os.path.realpath(path)
        self.address = address_of(self._path)
        self.clock = clock or SystemClock()
        self._wait_seconds = wait_seconds
        self._bell = Bell(f"{self._path}-bell")
        self._boot_id: str | None = None
        """The boot whose clock the leases in the database have been compared with."""
        self._threads = RLock()
        self._cursor: apsw.Cursor | None = open_database(self._path, wait_seconds).cursor()
        """One for all: to make a cursor takes longer than most statements do."""
        self._encode: Callable[[object], str] = as_text
        _opened.add(self)

    def _act(self, do: Callable[..., T], *given: Any) -> T:
        with self._threads:
            cursor = self._cursor or self._opened()
            database = cursor.connection
            before = database.total_changes()
            try:
                cursor.execute(_BEGIN)
                done = do(*given)
                cursor.execute(_COMMIT)
            except apsw.Error as error:
                failure = self._failed(error)
                self._undo(database)
                raise failure from None
            except BaseException:
                self._undo(database)
                raise
            if database.total_changes() != before:
                self._bell.ring()
            return done

    def _undo(self, database: apsw.Connection) -> None:
        self._boot_id = None  # what was not committed has to be done again
        if self._cursor is not None and database.in_transaction:
            self._rows("roll back")

    def _rows(self, query: str, **values: Any) -> list[Any]:
        with self._threads:
            try:
                return self._do(query, values).fetchall()
            except apsw.Error as error:
                raise self._failed(error) from None

    def _do(self, query: str, values: Mapping[str, Any] = _NO_VALUES) -> apsw.Cursor:
        """Within an act, which says what it means if it fails."""
        text, bound = STATEMENTS[query]
        return (self._cursor or self._opened()).execute(text, bound(values))

    def _moment(self) -> Moment:
        return self.clock.now()

    # -- what is written -------------------------------------------------------------------------------------------

    def _insert(self, values: dict[str, Any], fields: Json, change: Change) -> None:
        self._go_by_this_boot(values)
        self._do("insert entry", {"job_id": change.job.job_id, **entry_of(fields, change, self._encode)})
        self._do("insert job", {**values, "tells": change.job.last_seq > 0})
        self._do("insert prompt", values)

    def _update(self, before: Row, values: dict[str, Any], fields: Json, change: Change) -> None:
        values = self._completed(values, before, fields, change)
        self._write_entry(before, values)
        if not self._do("update job", values).connection.changes():
            # Its own number says where it stands, and somebody may have written another into the record.
            raise contradiction(before.record, self.address)

    def _completed(self, values: dict[str, Any], before: Row, fields: Json, change: Change) -> dict[str, Any]:
        """All that is bound to the statements which put a row in the place of the one before."""
        self._go_by_this_boot(values)
        tells = change.job.last_seq != before.job.last_seq
        return {**values, **entry_of(fields, change, self._encode), "tells": tells, "before": before.record}

    def _write_entry(self, before: Row, values: dict[str, Any]) -> None:
        """Only one that tells something, and is not the first that does, has to look for the one before it."""
        self._do("insert next entry" if values["tells"] and before.job.last_seq else "insert entry", values)

    def _go_by_this_boot(self, values: dict[str, Any]) -> None:
        """A lease of another boot goes by the wall clock, also when its job is written once more: those who have
        compared all leases with this boot would not look at it again."""
        if values["boot_id"] not in (None, self._boot_id) and values["boot_id"] != self.clock.now().boot_id:
            values["boot_id"] = values["boot_ms"] = None

    # -- the connection --------------------------------------------------------------------------------------------

    def _connection(self) -> apsw.Connection:
        return (self._cursor or self._opened()).connection

    def _opened(self) -> apsw.Cursor:
        self._cursor = open_database(self._path, self._wait_seconds).cursor()
        return self._cursor

    def _let_go(self) -> None:
        """Before a fork. SQLite takes a connection in the child for its own, and its locks for held; then the log of
        the one that lives longer may be deleted by the other."""
        with self._threads:
            if self._cursor is not None:
                self._cursor.connection.close()
                self._cursor = None

    def _begin_anew(self) -> None:
        """In a forked child: no thread of the parent's is here."""
        self._threads = RLock()

    def _failed(self, error: apsw.Error) -> StoreUnavailable:
        if isinstance(error, apsw.IOError):
            self._distrust()
        return unavailable(self._path, error, self._wait_seconds)

    def _distrust(self) -> None:
        """After an error of the disk. The log may hold a commit whose sync failed: in memory it looks whole, and who
        opens the log next would build on it. To close carries over what is durable and puts an end to the rest."""
        if self._cursor is not None:
            self._cursor.connection.close(True)
            self._cursor = None
