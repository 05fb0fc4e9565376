"""The port, on SQLite: each act is one immediate transaction, durable when it commits."""

from __future__ import annotations

import json
import os
from _thread import get_ident

from mam.clock import SystemClock
from mam.errors import StoreUnavailable, UnknownJob
from mam.stores.common import event_of
from mam.stores.port import Entry
from mam.stores.secrets import Secrets
from mam.stores.sql.look import Look
from mam.stores.sql.rows import Row
from mam.stores.sql.store import PAGE
from mam.stores.sqlite.database import create_database
from mam.stores.sqlite.plain import PlainStore
from mam.writing import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeVar

    from mam.clock import Clock, Moment
    from mam.jobs.change import Line
    from mam.stores.port import Request
    from mam.stores.watch import Watch

    T = TypeVar("T")

WAIT_SECONDS = 10.0


def create_sqlite_store(path: str, lock_wait_seconds: float = WAIT_SECONDS) -> bool:
    """Makes the database if there is none, or brings an older one up to date; whether it did."""
    return create_database(os.path.realpath(path), SystemClock().new_id(), lock_wait_seconds)


class SqliteStore(PlainStore):
    """A registry in one database file of one host. Threads and processes may share it; a fork opens its own."""

    def __init__(self, path: str, clock: Clock | None = None, lock_wait_seconds: float = WAIT_SECONDS) -> None:
        super().__init__(path, clock, lock_wait_seconds)
        self._watches: dict[int, Watch] = {}
        """One for each thread that waits: news that one has read would be lost to the other."""

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
        moment = self.clock.now()
        if moment.boot_id != self._boot_id:
            self._leave_other_boots(moment)
        return self._look_by(moment, request, limit)

    def due_in(self) -> float | None:
        if self.clock.now().boot_id != self._boot_id:
            self._act(self._look, None, 0)  # leases of another boot are kept by a clock that is gone
        return super().due_in()

    def _to_change(self, job_id: str) -> tuple[Row, Moment]:
        rows = self._rows("job to change", job_id=job_id)
        if not rows:
            raise UnknownJob(job=job_id, store=self.address)
        return self._row(*rows[0]), self.clock.now()

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

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._watches = {}  # what the parent watches

    @property
    def _secrets(self) -> Secrets:
        return Secrets(f"{self._path}-secrets")
