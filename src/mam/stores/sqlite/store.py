"""The port, on SQLite: each act is one immediate transaction, durable when it commits."""

from __future__ import annotations

import json
import os
from _thread import RLock, get_ident
from weakref import WeakSet

import apsw

from mam.clock import SystemClock
from mam.errors import StoreUnavailable, UnknownJob
from mam.stores.common import event_of
from mam.stores.port import Entry
from mam.stores.secrets import Secrets
from mam.stores.sql.look import Look
from mam.stores.sql.rows import Row, entry_of
from mam.stores.sql.store import PAGE
from mam.stores.sqlite.bell import Bell
from mam.stores.sqlite.database import address_of, create_database, open_database, unavailable
from mam.stores.sqlite.plain import PlainStore
from mam.stores.sqlite.statements import STATEMENTS
from mam.writing import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    from mam.clock import Clock, Moment
    from mam.jobs.change import Change, Line
    from mam.jobs.record import Json
    from mam.stores.port import Request
    from mam.stores.watch import Watch

    T = TypeVar("T")

WAIT_SECONDS = 10.0

_NO_VALUES: dict[str, Any] = {}

_opened: WeakSet[SqliteStore] = WeakSet()


def _before_fork() -> None:
    for store in list(_opened):
        store._let_go()


def _in_child() -> None:
    for store in list(_opened):
        store._begin_anew()


os.register_at_fork(before=_before_fork, after_in_child=_in_child)


def create_sqlite_store(path: str, lock_wait_seconds: float = WAIT_SECONDS) -> bool:
    """Makes the database if there is none, or brings an older one up to date; whether it did."""
    return create_database(os.path.realpath(path), SystemClock().new_id(), lock_wait_seconds)


class SqliteStore(PlainStore):
    """A registry in one database file of one host. Threads and processes may share it; a fork opens its own."""

    def __init__(self, path: str, clock: Clock | None = None, lock_wait_seconds: float = WAIT_SECONDS) -> None:
        super().__init__()
        self._path = os.path.realpath(path)
        self.address = address_of(self._path)
        self._bell = Bell(f"{self._path}-bell")
        self._boot_id: str | None = None
        """The boot whose clock the leases in the database have been compared with."""
        self.clock: Clock = clock or SystemClock()
        self._wait_seconds = lock_wait_seconds
        self._threads = RLock()
        self._cursor: apsw.Cursor | None = open_database(self._path, lock_wait_seconds).cursor()
        """One for all: to make a cursor takes longer than most statements do."""
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
            from mam.stores.watch import Watch, rung

            self._watches[get_ident()] = Watch(os.path.dirname(self._path), rung(self._bell.name))
            return True  # something may have happened before the watch began: look once more
        return self.end() != cursor or watch.wait(timeout)

    def close(self) -> None:
        with self._threads:
            for watch in self._watches.values():
                watch.close()
            self._watches = {}
            self._bell.muffle()
            self._let_go()

    # -- secrets ---------------------------------------------------------------------------------------------------

    def keep_secrets(self, job_id: str, secrets: dict[str, str]) -> None:
        try:
            self._act(self._secrets.keep, job_id, secrets)
        except OSError as error:
            raise StoreUnavailable(
                store=self.address, problem=f"its secrets cannot be kept: {error.strerror}"
            ) from None

    def secrets(self, job_id: str) -> dict[str, str]:
        try:
            return self._secrets.of(job_id)
        except OSError as error:
            raise StoreUnavailable(
                store=self.address, problem=f"its secrets cannot be read: {error.strerror}"
            ) from None

    # -- how it is done here ---------------------------------------------------------------------------------------

    def _look(self, request: Request | None, limit: int) -> Look:
        return self._look_by(self._now(), request, limit)

    def _now(self) -> Moment:
        """The time, by which leases of an earlier boot are no longer kept."""
        moment = self.clock.now()
        if moment.boot_id != self._boot_id:
            self._rows("other boots", boot_id=moment.boot_id)
            self._boot_id = moment.boot_id
        return moment

    def due_in(self) -> float | None:
        if self.clock.now().boot_id != self._boot_id:
            self._act(self._look, None, 0)  # leases of another boot are kept by a clock that is gone
        return super().due_in()

    def _to_change(self, job_id: str) -> tuple[Row, Moment]:
        rows = self._ask("job to change", {"job_id": job_id})
        if not rows:
            raise UnknownJob(job=job_id, store=self.address)
        return self._row(*rows[0]), self.clock.now()

    def _insert(self, values: dict[str, Any], fields: Json, change: Change) -> None:
        self._go_by_this_boot(values)
        self._do("insert entry", {"job_id": change.job.job_id, **entry_of(fields, change)})
        self._do("insert job", {**values, "tells": change.job.last_seq > 0})
        self._do("insert prompt", values)

    def _update(self, before: Row, values: dict[str, Any], fields: Json, change: Change) -> None:
        values = self._completed(values, before, fields, change)
        self._write_entry(before, values)
        self._write_row("update job", values, before.record)

    def _go_by_this_boot(self, values: dict[str, Any]) -> None:
        """A lease of another boot goes by the wall clock, also when its job is written once more: those who have
        compared all leases with this boot would not look at it again."""
        if values["boot_id"] not in (None, self._boot_id) and values["boot_id"] != self.clock.now().boot_id:
            values["boot_id"] = values["boot_ms"] = None

    def _move_to_archive(self, job_ids: list[str], lines: dict[str, str]) -> None:
        def do() -> None:
            names = ("job_id", "number", "key", "retry_of", "root", "record", "prompt")
            for found in self._rows("to archive", job_ids=json.dumps(job_ids)):
                job_id = found[0]
                self._rows(
                    "put into archive", **dict(zip(names, found, strict=True)), events=as_text(self.events(job_id))
                )
                self._forget(job_id)
                self._rows("insert entry", job_id=job_id, fields=None, lines=lines[job_id])

        self._act(do)

    def _forget(self, job_id: str) -> None:
        self._rows(
            "forget job", job_id=job_id
        )  # what was told about it stays in the journal, where nobody looks for it

    def events(self, job_id: str) -> list[Line]:
        lines = [line for row in self._rows("events", job_id=job_id) for line in json.loads(row[0])]
        return [event for event in map(event_of, lines) if event is not None]

    def _first_pending(self, label: str, skipped: list[str]) -> list[Any]:
        return self._rows("first of others", label=label, skipped=json.dumps(skipped))

    def _act(self, do: Callable[..., T], *given: Any) -> T:
        with self._threads:
            database = (self._cursor or self._opened()).connection
            before = database.total_changes()
            try:
                self._do("begin")
                done = do(*given)
                self._do("commit")
            except BaseException:
                self._boot_id = None  # what was not committed has to be done again
                if self._cursor is not None and database.in_transaction:
                    self._do("roll back")
                raise
            if database.total_changes() != before:
                self._bell.ring()
            return done

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

    def _distrust(self) -> None:
        """After an error of the disk. The log may hold a commit whose sync failed: in memory it looks whole, and who
        opens the log next would build on it. To close carries over what is durable and puts an end to the rest."""
        if self._cursor is not None:
            self._cursor.connection.close(True)
            self._cursor = None

    def _begin_anew(self) -> None:
        """In a forked child: no thread of the parent's is here, and what it watched is not ours."""
        self._threads = RLock()
        self._watches = {}

    @property
    def _secrets(self) -> Secrets:
        return Secrets(f"{self._path}-secrets")

    def _moment(self) -> Moment:
        return self.clock.now()

    def _rows(self, query: str, **values: Any) -> list[Any]:
        with self._threads:
            return self._ask(query, values)

    def _ask(self, query: str, values: Mapping[str, Any]) -> list[Any]:
        """What the query answers."""
        try:
            return self._do(query, values).fetchall()
        except apsw.Error as error:
            raise self._failed(error) from None

    def _do(self, query: str, values: Mapping[str, Any] = _NO_VALUES) -> apsw.Cursor:
        """Every statement goes through here; one that answers nothing has happened when this returns."""
        text, bound = STATEMENTS[query]
        try:
            return (self._cursor or self._opened()).execute(text, bound(values))
        except apsw.Error as error:
            raise self._failed(error) from None

    def _failed(self, error: apsw.Error) -> StoreUnavailable:
        if isinstance(error, apsw.IOError):
            self._distrust()
        return unavailable(self._path, error, self._wait_seconds)
