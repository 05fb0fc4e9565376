"""The connection of a store: statements, transactions, and lost responses.

A statement whose response was lost may have taken effect. The client first ends the server process of the lost
connection. It then searches for its own claim id or act id before it repeats the act.
"""

from __future__ import annotations

import os
import re
import time
from _thread import RLock, get_ident
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import TextLoader

from mam.errors import MamError
from mam.stores.postgres import limits
from mam.stores.postgres.connection import NoAnswer, text
from mam.stores.postgres.news import Listener
from mam.stores.sql.queries import FIXED, SHARED, load_queries
from mam.stores.sql.rows import COLUMNS
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    from mam.stores.postgres.connection import Connection, Server

    T = TypeVar("T")
    Values = dict[str, Any]

_PREPARED_AFTER = 2
"""A statement is prepared when it was sent so often: preparing takes a round trip, which a short command cannot win
back."""

_NAMES = [*(name for name in COLUMNS if name != "version"), "blocked", "asking", "due_ms", "host"]
_PARTS = {
    "schema": "mam",
    "jobs": "mam.job",
    "prompt": "",
    "open": "ended_at IS NULL",
    "ended": "status IN ('completed', 'error', 'cancelled')",
    "failed": "status IN ('error', 'cancelled')",
    "lock": "FOR NO KEY UPDATE",
    "skip locked": "FOR NO KEY UPDATE OF job SKIP LOCKED",
    "columns": ", ".join(COLUMNS),
    "names": ", ".join(_NAMES),
    "values": ", ".join(f"%({name})s" for name in _NAMES),
    "set": ", ".join(f"{name} = %({name})s" for name in _NAMES if name not in FIXED),
}
_DIALECT = (
    (r" INDEXED BY \w+", ""),
    (r"SELECT value FROM json_each\((:\w+)\)", r"SELECT json_array_elements_text(\1::json)"),
    (r"(?<!:):(\w+)", r"%(\1)s"),
)
"""How a shared query, which is written for SQLite, is written for PostgreSQL."""


def _translated(query: str) -> str:
    for pattern, replacement in _DIALECT:
        query = re.sub(pattern, replacement, query)
    return query


_SHARED = {name: _translated(query) for name, query in load_queries(SHARED, **_PARTS).items()}
QUERIES = {**_SHARED, **load_queries(__file__, **_PARTS)}
_AGAIN = (errors.UniqueViolation, errors.SerializationFailure, errors.DeadlockDetected)
"""Another writer was faster; the repeated act sees its result."""


class Work(Frozen):
    """What may continue after a connection was lost. A pooler may give the process to another client meanwhile, so a
    transaction names when it began."""

    process: int
    began: str | None = None


class Client:
    """Threads share one connection; a fork opens its own."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._threads = RLock()
        self._process = os.getpid()
        self._holder: int | None = None
        """The thread that has a transaction open."""
        self._work: Work | None = None
        """The server process that works for the connection."""
        self._lost_work: Work | None = None
        self._inherited: list[Connection | None] = []
        self._connection: Connection | None = None
        self.listener = Listener(self)
        self.connections = 0
        """How often it connected; a new connection may lead to another server."""
        self._use(self._open())

    @property
    def in_act(self) -> bool:
        """Whether this thread has a transaction open."""
        return self._holder == get_ident() and self._process == os.getpid()

    # -- for the store -----------------------------------------------------------------------------------

    @property
    def is_pooled(self) -> bool:
        return self._server.is_pooled

    def version(self) -> list[Any]:
        """The version of the schema. It also shows whether a pooler is in between, which hides the server process."""
        rows = self.once(lambda: self._send(QUERIES["version"], None), lambda: None, is_read=True)
        if any(process != self._connected().info.backend_pid for _version, process in rows):
            self._server.is_pooled = True
            self._connected().prepare_threshold = self._work = None
        return rows

    def rows(self, query: str, values: Values) -> list[Any]:
        """The rows of a query. Outside a transaction a query only reads, so it is repeated after a lost response."""
        self._notice_fork()
        if self.in_act:
            return self._send(QUERIES[query], values)
        return self.once(lambda: self.write(query, values), lambda: None, is_read=True)

    def write(self, query: str, values: Values) -> list[Any]:
        """One statement as its own transaction; only inside `once`, which handles failures."""
        with self._threads:
            if self._server.is_pooled and not self.in_act:
                return self._write_pooled(query, values)
            return self._send(QUERIES[query], values)

    def _write_pooled(self, query: str, values: Values) -> list[Any]:
        """A pooler keeps settings and server process only within a transaction."""
        try:
            self._begin()
            rows = self._send(QUERIES[query], values)
            self._send("COMMIT", None)
            return rows
        except BaseException:
            self._holder = None
            self._undone()
            raise
        finally:
            self._holder = None

    def many(self, query: str, each: Sequence[Values]) -> None:
        """Runs a statement for each set of values, in the open transaction."""
        if each:
            with self._connected().cursor() as cursor:
                cursor.executemany(text(QUERIES[query]), each)

    def once(self, do: Callable[[], T], found: Callable[[], T | None], *, is_read: bool = False) -> T:
        """Runs an act whose only write is its last statement. After a lost response, `found` returns the outcome if the
        act took effect."""
        self._notice_fork()
        ends = time.monotonic() + self._server.patience_seconds
        while True:
            try:
                return do()
            except psycopg.Error as error:
                is_lost = self._drop_if_lost()
                if isinstance(error, NoAnswer) and not is_read:
                    raise self._server.unconfirmed() from None
                self._pause_or_raise(error, ends, is_lost=is_lost)
            done = found() if is_lost else None
            if done is not None:
                self._confirm()
                return done

    def act(self, do: Callable[[], T], is_done: Callable[[], bool]) -> T:
        """Runs `do` in one transaction. `is_done` returns whether a commit with a lost response took effect."""
        self._notice_fork()
        ends = time.monotonic() + self._server.patience_seconds
        with self._threads:
            while True:
                commits, done = False, None
                try:
                    self._begin()
                    done = do()
                    commits = True
                    self._send("COMMIT", None)
                    return done
                except psycopg.Error as error:
                    is_lost = self._undone()
                    if commits and isinstance(error, NoAnswer):
                        raise self._server.unconfirmed() from None
                    self._pause_or_raise(error, ends, is_lost=is_lost)
                except BaseException:
                    self._undone()
                    raise
                finally:
                    self._holder = None
                if commits and is_lost and is_done():
                    self._confirm()
                    return done  # type: ignore[return-value]

    @contextmanager
    def locked(self) -> Iterator[Connection]:
        """The connection, which no other thread uses meanwhile."""
        self._notice_fork()
        with self._threads:
            yield self._connected()

    def _confirm(self) -> None:
        """A commit whose response was lost may be on this server alone. The next commit waits for the standby, if there
        is one, and for everything before it."""
        self.once(lambda: self.write("confirm", {}), lambda: None)

    def connect(self) -> Connection:
        """Opens a new connection; the server may be restarting."""
        ends = time.monotonic() + self._server.patience_seconds
        while True:
            try:
                return self._open(ends)
            except MamError:
                if time.monotonic() >= ends:
                    raise
                time.sleep(limits.PAUSE_SECONDS)

    def close(self) -> None:
        self._notice_fork()
        self.listener.close()
        with self._threads:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    # -- the connection --------------------------------------------------------------------------------------------

    def _send(self, query: str, values: Values | None) -> list[Any]:
        """Sends one statement; every statement goes through here."""
        cursor = self._connected().execute(text(query), values)
        while values is None and cursor.nextset():
            pass  # behind a pooler a transaction begins with two statements; the last one answers
        answer = cursor.pgresult  # `description` would describe each of fifty columns
        return cursor.fetchall() if answer is not None and answer.nfields else []

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            if self.in_act:
                raise psycopg.OperationalError("the connection was lost")
            self._drop_if_lost()
            return self._use(self.connect())
        return self._connection

    def _use(self, connection: Connection) -> Connection:
        self._connection = connection
        connection.add_notify_handler(lambda said: self.listener.hear(said.payload, said.pid))
        self.connections += 1
        self._work = None if self._server.is_pooled else Work(process=connection.info.backend_pid)
        if self._lost_work is not None:
            self._end_work(connection, self._lost_work)
            self._lost_work = None
        return connection

    def _begin(self) -> None:
        for process, began, *_settings in self._send(self._server.begin, None):
            self._work = Work(process=process, began=began)
        self._holder = get_ident()

    def _end_work(self, connection: Connection, work: Work) -> None:
        ends = time.monotonic() + limits.PATIENCE_SECONDS
        while connection.execute(text(QUERIES["end backend"]), work.as_dict()).fetchall():
            if time.monotonic() >= ends:
                raise self._server.unavailable(psycopg.OperationalError("a lost connection does not end"))
            time.sleep(0.001)

    def _open(self, ends: float | None = None) -> Connection:
        """Integers have one type whatever their size, so that each query is prepared once; JSON is returned as text."""
        connection = self._server.connect(ends)
        connection.prepare_threshold = None if self._server.is_pooled else _PREPARED_AFTER
        connection.adapters.register_dumper(int, Int8Dumper)
        connection.adapters.register_loader("json", TextLoader)
        return connection

    def _drop_if_lost(self) -> bool:
        """Whether the connection is lost, and with it maybe a response."""
        with self._threads:
            if self._connection is not None and not self._connection.closed:
                return False
            if self._connection is not None:
                self._lost_work, self._connection = self._work, None
                self.listener.wake()
            return True

    def _undone(self) -> bool:
        """Rolls the open transaction back. Returns whether the connection is lost."""
        if self._drop_if_lost():
            return True
        try:
            self._send("ROLLBACK", None)
        except psycopg.Error:
            pass  # a lost connection has rolled it back
        return self._drop_if_lost()

    def _pause_or_raise(self, error: psycopg.Error, ends: float, *, is_lost: bool) -> None:
        passing = isinstance(error, psycopg.OperationalError) and not isinstance(error, errors.QueryCanceled)
        if isinstance(error, errors.ReadOnlySqlTransaction) and self._connection is not None:
            self._connection.close()  # this server is no primary any more; another host of the address may be
            is_lost = True
        if not (is_lost or passing or isinstance(error, _AGAIN)) or time.monotonic() >= ends:
            raise self._server.unavailable(error) from None
        if not isinstance(error, _AGAIN):
            time.sleep(limits.PAUSE_SECONDS)

    def _notice_fork(self) -> None:
        """A forked child must not use or close its parent's connection, nor wait for its threads."""
        if self._process != os.getpid():
            self._inherited.append(self._connection)
            self._connection = self._lost_work = self._holder = None
            self._threads = RLock()
            self._process = os.getpid()
