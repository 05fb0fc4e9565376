"""The port, on PostgreSQL: each act is one transaction, and the server's clock is the only one that counts."""

from __future__ import annotations

import json
import os
import time
from _thread import RLock, get_ident
from weakref import ref

import psycopg
from psycopg import errors

from mam.clock import Moment, SystemClock
from mam.errors import MamError
from mam.stores.port import Entry
from mam.stores.postgres.connection import Server, text
from mam.stores.postgres.schema import check_version, create_schema
from mam.stores.sql.queries import load_queries
from mam.stores.sql.store import PAGE, SqlStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from mam.clock import Clock
    from mam.jobs.change import Change
    from mam.jobs.record import Job
    from mam.stores.postgres.connection import Connection

    T = TypeVar("T")

PATIENCE_SECONDS = 10.0
"""How long a verb tries to get through to a server that was there before."""

_PAUSE = 0.1
_QUERIES = {name: text(query) for name, query in load_queries(__file__).items()}
_AGAIN = (errors.UniqueViolation, errors.SerializationFailure, errors.DeadlockDetected)
"""Somebody else was quicker; asked again, the act sees what they did."""


def create_postgres_store(url: str) -> bool:
    """Makes the schema if there is none, or brings an older one up to date; whether it did."""
    return create_schema(Server(url), SystemClock().new_id())


class ServerClock:
    """PostgreSQL's time for everything that is judged; ids and chance need no judge."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = ref(store)  # weak: a store that is dropped closes its connection at once
        self._local = SystemClock()

    def now(self) -> Moment:
        store = self._store()
        assert store is not None
        return Moment(wall_ms=int(store._value("now")))

    def new_id(self) -> str:
        return self._local.new_id()

    def chance(self) -> float:
        return self._local.chance()


class PostgresStore(SqlStore):
    """A registry for many hosts. Threads share one connection; a fork opens its own."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self._server = Server(url)
        self.address = self._server.address
        self.clock = clock or ServerClock(self)
        self._threads = RLock()
        self._process = os.getpid()
        self._connection: Connection | None = self._server.connect()
        self._listeners: dict[int, Connection] = {}
        """One for each thread that waits: news that one has read would be lost to the other."""
        self._written: dict[str, str] | None = None
        """The last entry of the transaction that is open, by which it can be recognised."""
        self._in_act = False
        self._inherited: tuple[Connection | None, ...] = ()
        try:
            check_version(self._server, self._rows("version"))
        except MamError:
            self.close()
            raise

    # -- the journal -----------------------------------------------------------------------------------------------

    def end(self) -> str:
        """Behind everything that is sure to be seen; transactions still running come later, whatever their number."""
        return f"{self._value('end')}:0"

    def entries(self, cursor: str | None) -> Iterator[Entry]:
        end = str(self._value("end"))
        xact, _, number = (cursor or "0:0").partition(":")
        while rows := self._rows("entries", xact=xact, number=int(number), end=end, limit=PAGE):
            for xact, number, job_id, fields, lines in rows:
                yield Entry(
                    cursor=f"{xact}:{number}",
                    number=number,
                    job_id=job_id,
                    fields=None if fields is None else json.loads(fields),
                    lines=tuple(json.loads(lines)),
                )

    def wait(self, cursor: str, timeout: float) -> bool:
        self._notice_fork()
        try:
            listener = self._listeners.get(get_ident())
            if listener is None or listener.closed:
                listener = self._listeners[get_ident()] = self._reconnected()
                listener.execute(text(f"LISTEN {self._server.channel}"))
                return True  # something may have happened before the ear was there: look once more
            if self.end() != cursor and next(iter(self.entries(cursor)), None) is not None:
                return True
            return any(True for _ in listener.notifies(timeout=timeout, stop_after=1))
        except psycopg.Error:
            lost = self._listeners.pop(get_ident(), None)
            if lost is not None:
                lost.close()
            return True  # the server went away; whoever waits finds out whether it is back

    def close(self) -> None:
        with self._threads:
            if self._process == os.getpid():
                for connection in (self._connection, *self._listeners.values()):
                    if connection is not None:
                        connection.close()
            self._connection, self._listeners = None, {}

    def __del__(self) -> None:
        if hasattr(self, "_listeners"):
            self.close()

    # -- how it is done here ---------------------------------------------------------------------------------------

    def _moment(self) -> Moment:
        return self.clock.now()

    def _append(self, job_id: str, fields: str, lines: str) -> None:
        xact = str(self._value("insert entry", job_id=job_id, fields=fields, lines=lines))
        self._written = {"xact": xact, "job_id": job_id, "lines": lines}

    def _write(self, before: Job | None, change: Change) -> None:
        super()._write(before, change)
        status = change.job.status
        if change.lines and (before is None or status is not before.status) and (status.ended or status == "pending"):
            self._run("notify", channel=self._server.channel)

    def _act(self, do: Callable[[], T]) -> T:
        """A connection that is lost before the commit loses nothing, so the act is done again from the beginning. One
        that is lost during the commit leaves a question, and the server is asked what became of the transaction."""
        self._notice_fork()
        ends = time.monotonic() + PATIENCE_SECONDS
        with self._threads:
            while True:
                self._written = None
                try:
                    self._execute("BEGIN")
                    self._in_act = True
                    done = do()
                except MamError:
                    self._undo()
                    raise
                except psycopg.Error as error:
                    self._undo()
                    self._pause_or_give_up(error, ends)
                    continue
                except BaseException:
                    self._undo()
                    raise
                if self._committed(ends):
                    return done

    def _committed(self, ends: float) -> bool:
        """Whether the act has happened; False when it has to be done again."""
        try:
            self._execute("COMMIT")
        except psycopg.Error as error:
            self._undo()
            lost = isinstance(error, psycopg.OperationalError)
            if lost and (self._written is None or self._has_happened(self._written, ends, error)):
                return True  # nothing was written, or it is there
            self._pause_or_give_up(error, ends)
            return False
        finally:
            self._in_act = False
        return True

    def _has_happened(self, written: dict[str, str], ends: float, error: psycopg.Error) -> bool:
        """The server is asked what became of a commit that it did not answer."""
        self._in_act = False
        while True:
            try:
                status = str(self._execute(_QUERIES["outcome"], {"xact": written["xact"]})[0][0])
                if status == "committed":
                    return bool(self._execute(_QUERIES["is ours"], written)[0][0])
            except errors.InvalidParameterValue:
                return False  # the server crashed and has forgotten that number: it was never on its disk
            except psycopg.OperationalError as again:
                self._pause_or_give_up(again, ends)
                continue
            if status != "in progress":
                return False
            self._pause_or_give_up(error, ends)

    def _undo(self) -> None:
        self._in_act = False
        connection = self._connection
        if connection is None or connection.closed:
            return
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()

    def _pause_or_give_up(self, error: psycopg.Error, ends: float) -> None:
        lost = self._connection is None or self._connection.closed or isinstance(error, psycopg.OperationalError)
        if not isinstance(error, _AGAIN) and not lost:
            raise self._server.unavailable(error) from None
        if isinstance(error, errors.QueryCanceled) or time.monotonic() >= ends:
            raise self._server.unavailable(error) from None
        if not isinstance(error, _AGAIN):
            time.sleep(_PAUSE)

    def _rows(self, query: str, **values: Any) -> list[Any]:
        """Inside an act a failure is the act's; a reader simply asks again."""
        ends = time.monotonic() + PATIENCE_SECONDS
        with self._threads:
            while True:
                try:
                    return self._execute(_QUERIES[query], values)
                except psycopg.Error as error:
                    if self._in_act:
                        raise
                    self._pause_or_give_up(error, ends)

    def _execute(self, query: Any, values: Any = None) -> list[Any]:
        self._notice_fork()
        if self._connection is None or self._connection.closed:
            if self._in_act:
                raise psycopg.OperationalError("the connection was lost")
            self._connection = self._reconnected()
        cursor = self._connection.execute(query, values)
        return cursor.fetchall() if cursor.description else []

    def _notice_fork(self) -> None:
        """A child must not use its parent's connection, nor close it, nor wait for a thread that stayed there."""
        if self._process != os.getpid():
            self._inherited = (self._connection, *self._listeners.values())
            self._connection, self._listeners = None, {}
            self._threads = RLock()
            self._process = os.getpid()

    def _reconnected(self) -> Connection:
        """A server that was there before may be starting again."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._server.connect()
            except MamError:
                if time.monotonic() >= ends:
                    raise
                time.sleep(_PAUSE)
