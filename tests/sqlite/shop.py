"""A store whose bursts are counted, or silent, and a clock that stands still."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mam.jobs.record import Job
from mam.registry import Registry
from mam.stores.port import Entry, Request
from mam.stores.sqlite.bursts import Burst
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.clock import FakeClock

LABEL = "many"
REQUEST = Request(label=LABEL, owner='who "asks" 100% (%s)')


class Told(Burst):
    """Counts what it said again, or says nothing again."""

    def __init__(self, *, is_silent: bool = False) -> None:
        super().__init__()
        self.is_silent = is_silent
        self.claims = self.ends = 0

    def claimed_again(self, *asked: Any) -> Any:
        said = None if self.is_silent else super().claimed_again(*asked)
        self.claims += said is not None
        return said

    def ended_again(self, *asked: Any) -> Any:
        said = None if self.is_silent else super().ended_again(*asked)
        self.ends += said is not None
        return said


class Shop:
    def __init__(self, path: Path, *, is_silent: bool = False) -> None:
        create_sqlite_store(str(path))
        self.path = path
        self.clock = FakeClock()
        self.store = SqliteStore(str(path), self.clock)
        self.burst = self.store._burst = Told(is_silent=is_silent)
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
