"""A worker in this process on every kind of store that one process can have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.memory import MemoryStore
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.conformance.base import check_journal
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.stores.port import Store


def make_store(kind: str, folder: Path) -> Store:
    if kind == "memory":
        return MemoryStore()
    if kind == "files":
        create_files_store(str(folder / "jobs"))
        return FilesStore(str(folder / "jobs"))
    create_sqlite_store(str(folder / "jobs.db"))
    return SqliteStore(str(folder / "jobs.db"))


@pytest.fixture(params=["memory", "files", "sqlite"], name="harness")
def harness_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    """On every store; the journal is sound after each test."""
    store = make_store(request.param, tmp_path)
    harness = Harness(store, tmp_path)
    yield harness
    check_journal(store)
    store.close()


@pytest.fixture(name="quick")
def quick_fixture(tmp_path: Path) -> Harness:
    """For what has nothing to do with the store."""
    return Harness(MemoryStore(), tmp_path)
