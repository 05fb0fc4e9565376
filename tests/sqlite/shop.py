"""A store that counts what it did the plain way, or goes the long way only, and a clock that stands still."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from mam.registry import Registry
from mam.stores.port import Entry, Request
from mam.stores.sql.store import SqlStore
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.clock import FakeClock

if TYPE_CHECKING:
    from mam.jobs.change import Change
    from mam.jobs.record import Job
    from mam.stores.sql.rows import Row

LABEL = "many"
REQUEST = Request(label=LABEL, owner='who "asks" 100% (%s)')


class CountingStore(SqliteStore):
    """How many claims and ends went the plain way."""

    claims = ends = 0

    def _claim_ready(self, request: Request) -> Job | None:
        job = super()._claim_ready(request)
        self.claims += job is not None
        return job

    def _end_known(self, row: Row, change: Change) -> bool:
        is_written = super()._end_known(row, change)
        self.ends += is_written
        return is_written


class LongWayStore(CountingStore):
    """What stores of all databases share, and nothing else."""

    claim = SqlStore.claim
    _change = SqlStore._change


class Interrupted(apsw.Cursor):
    """The cursor of a store, whose user presses Ctrl-C right before or behind a statement."""

    def __init__(self, store: SqliteStore, before: str = "", behind: str = "") -> None:
        super().__init__(store._connection())
        self._before, self._behind = before, behind

    def execute(self, text: str, *given: Any) -> apsw.Cursor:  # type: ignore[override] # as the store calls it
        if text == self._before:
            raise KeyboardInterrupt
        done = super().execute(text, *given)
        if text == self._behind:
            raise KeyboardInterrupt
        return done


class Shop:
    def __init__(self, path: Path, kind: type[CountingStore] = CountingStore) -> None:
        create_sqlite_store(str(path))
        self.path = path
        self.clock = FakeClock()
        self.store = kind(str(path), self.clock)
        self.registry = Registry(self.store)

    def register(self, *ids: str, **choices: Any) -> None:
        for job_id in ids:
            self.registry.register(**{"prompt": "x", **choices}, agent="shell", label=LABEL, job_id=job_id)
        self.clock.advance(1)

    def claim(self, request: Request = REQUEST) -> Job:
        job = self.store.claim(request)
        assert job is not None
        return job

    def entries(self) -> list[tuple[str, Any, Any]]:
        def plain(entry: Entry) -> tuple[str, Any, Any]:
            return entry.job_id, entry.fields, entry.lines

        return [plain(entry) for entry in self.store.entries(None)]
