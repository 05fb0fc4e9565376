"""How many files a job creates: on some disks each costs more than all other work for the job."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tests.disks import made_so_far
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from pathlib import Path

    from mam.stores.port import Store

JOBS = 5
OF_A_STORE = {"files": 3, "sqlite": 0}
"""The record when it is claimed, and again when it has ended, and the log of its events."""
OF_OUTPUT = 2
"""The output in the store, from which other hosts read it, and the job's directory there."""


@pytest.fixture
def disk(own_disk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(own_disk))
    return own_disk


@pytest.fixture(params=list(OF_A_STORE))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def store_on(disk: Path, kind: str) -> Store:
    if kind == "sqlite":
        create_sqlite_store(str(disk / "jobs.db"))
        return SqliteStore(str(disk / "jobs.db"))
    create_files_store(str(disk / "jobs"))
    return FilesStore(str(disk / "jobs"))


def made_by_jobs(harness: Harness, disk: Path, count: int) -> int:
    for _ in range(count):
        harness.job("echo hello")
    before = made_so_far(disk)
    assert harness.drain() == count
    return made_so_far(disk) - before - 1


def made_by_one_more(store: Store, disk: Path) -> float:
    """What a worker makes once, for itself, is not counted."""
    harness = Harness(store, disk)
    made_by_jobs(harness, disk, 1)  # the first worker of a store has directories to make
    alone, together = made_by_jobs(harness, disk, 1), made_by_jobs(harness, disk, 1 + JOBS)
    store.close()
    return (together - alone) / JOBS


def test_a_job_creates_few_files(disk: Path, kind: str) -> None:
    assert made_by_one_more(store_on(disk, kind), disk) <= OF_A_STORE[kind] + OF_OUTPUT + 3


def test_no_door_where_there_is_a_better_place_for_it(
    disk: Path, kind: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    assert made_by_one_more(store_on(disk, kind), disk) <= OF_A_STORE[kind] + OF_OUTPUT + 2
