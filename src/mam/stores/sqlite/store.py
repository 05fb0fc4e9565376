"""The port, on SQLite: each act is one immediate transaction, durable when it commits."""

from __future__ import annotations

import json
import os
from _thread import RLock, get_ident
from weakref import WeakSet

import apsw

from mam.clock import SystemClock
from mam.stores.port import Entry
from mam.stores.sql.queries import load_queries
from mam.stores.sql.store import PAGE, SqlStore
from mam.stores.sqlite.database import address_of, create_database, open_database, unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from mam.clock import Clock, Moment
    from mam.stores.watch import Watch

    T = TypeVar("T")

WAIT_SECONDS = 10.0

_QUERIES = load_queries(__file__)


_opened: WeakSet[SqliteStore] = WeakSet()


def _before_fork() -> None:
    for store in list(_opened):
        store._let_go()


def _in_child() -> None:
    for store in list(_opened):
        store._begin_anew()


os.register_at_fork(before=_before_fork, after_in_child=_in_child)


def create_sqlite_store(path: str) -> bool:
    """Makes the database if there is none, or brings an older one up to date; whether it did."""
    return create_database(os.path.realpath(path), SystemClock().new_id())


class SqliteStore(SqlStore):
    """A registry in one database file of one host. Threads and processes may share it; a fork opens its own."""

    def __init__(self, path: str, clock: Clock | None = None, lock_wait_seconds: float = WAIT_SECONDS) -> None:
        self._path = os.path.realpath(path)
        self.address = address_of(self._path)
        self._bell = f"{self._path}-bell"
        self.clock: Clock = clock or SystemClock()
        self._wait_seconds = lock_wait_seconds
        self._threads = RLock()
        self._database: apsw.Connection | None = open_database(self._path, lock_wait_seconds)
        self._watches: dict[int, Watch] = {}
        """One for each thread that waits: news that one has read would be lost to the other."""
        _opened.add(self)

    # -- the journal -----------------------------------------------------------------------------------------------

    def end(self) -> str:
        return str(self._value("last entry"))

    def entries(self, cursor: str | None) -> Iterator[Entry]:
        after, upto = int(cursor or 0), int(self.end())
        while rows := self._rows("entries", after=after, upto=upto, limit=PAGE):
            for number, job_id, fields, lines in rows:
                after = number
                yield Entry(
                    cursor=str(number),
                    number=number,
                    job_id=job_id,
                    fields=None if fields is None else json.loads(fields),
                    lines=tuple(json.loads(lines)),
                )

    def wait(self, cursor: str, timeout: float) -> bool:
        watch = self._watches.get(get_ident())
        if watch is None:
            from mam.stores.watch import Watch, written

            news = written(os.path.basename(self._bell))
            self._watches[get_ident()] = Watch(os.path.dirname(self._path), news)
            return True  # something may have happened before the watch began: look once more
        return self.end() != cursor or watch.wait(timeout)

    def close(self) -> None:
        with self._threads:
            for watch in self._watches.values():
                watch.close()
            self._watches = {}
            self._let_go()

    # -- shared ----------------------------------------------------------------------------------------------------

    def _act(self, do: Callable[[], T]) -> T:
        with self._threads:
            self._run("begin")
            before = self._connection().total_changes()
            try:
                done = do()
                self._run("commit")
            except BaseException:
                if self._connection().in_transaction:
                    self._run("roll back")
                raise
            if self._connection().total_changes() != before:
                self._ring()
            return done

    def _ring(self) -> None:
        """Wakes those who wait. The log's own file would wake them too early: before others can see what it holds."""
        try:
            descriptor = os.open(self._bell, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            os.pwrite(descriptor, b"\n", 0)
            os.close(descriptor)
        except OSError:
            pass  # nobody waits longer than a nap

    def _connection(self) -> apsw.Connection:
        if self._database is None:
            self._database = open_database(self._path, self._wait_seconds)
        return self._database

    def _let_go(self) -> None:
        """Before a fork. SQLite takes a connection in the child for its own, and its locks for held; then the log of
        the one that lives longer may be deleted by the other."""
        with self._threads:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _begin_anew(self) -> None:
        """In a forked child: no thread of the parent's is here, and what it watched is not ours."""
        self._threads = RLock()
        self._watches = {}

    def _moment(self) -> Moment:
        return self.clock.now()

    def _rows(self, query: str, **values: Any) -> list[Any]:
        with self._threads:
            try:
                return self._connection().execute(_QUERIES[query], values).fetchall()
            except apsw.Error as error:
                raise unavailable(self._path, error, self._wait_seconds) from None
