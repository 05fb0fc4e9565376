"""A registry in one SQLite file of a temporary directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mam.registry import Registry
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store


class StoreFile:
    """The file, and the stores that were opened on it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: list[SqliteStore] = []
        create_sqlite_store(str(path))

    @property
    def address(self) -> str:
        return f"sqlite://{self.path}"

    def open(self, lock_wait_seconds: float = 10.0) -> Registry:
        """What the next process would have."""
        store = SqliteStore(str(self.path), lock_wait_seconds=lock_wait_seconds)
        self._opened.append(store)
        return Registry(store)

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()


@pytest.fixture
def store_file(tmp_path: Path) -> Iterator[StoreFile]:
    store_file = StoreFile(tmp_path / "jobs.db")
    yield store_file
    store_file.close()
