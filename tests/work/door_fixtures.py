"""A worker's door on every kind of store that one process can have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.memory import MemoryStore
from mam.work.door.server import DoorServer
from tests.work.doors import held_job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.jobs.record import Job
    from mam.work.door.server import Door


@pytest.fixture(params=["memory", "files", "sqlite"], name="registry")
def registry_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Registry:
    if request.param == "memory":
        return Registry(MemoryStore())
    if request.param == "sqlite":
        sqlite = pytest.importorskip("mam.stores.sqlite.store")
        sqlite.create_sqlite_store(str(tmp_path / "jobs.db"))
        return Registry(sqlite.SqliteStore(str(tmp_path / "jobs.db")))
    create_files_store(str(tmp_path / "jobs"))
    return Registry(FilesStore(str(tmp_path / "jobs")))


@pytest.fixture(name="door_server")
def door_server_fixture(registry: Registry) -> Iterator[DoorServer]:
    with DoorServer(registry) as door_server:
        yield door_server


@pytest.fixture(name="job")
def job_fixture(registry: Registry) -> Job:
    return held_job(registry)


@pytest.fixture(name="door")
def door_fixture(door_server: DoorServer, job: Job) -> Door:
    return door_server.open(job.job_id, job.attempt, "/", claim_id=job.claim_id)
