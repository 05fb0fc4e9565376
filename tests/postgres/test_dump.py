"""A dump loaded into another server is the same store, and its journal goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mam.audit.sync import AuditLog
from mam.registry import Registry
from mam.stores.port import Query
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import register_and_claim
from tests.postgres.server import PrivateServer, programs


@pytest.fixture
def younger() -> Iterator[PrivateServer]:
    with TemporaryDirectory(prefix="mam-pg-") as folder:
        os.chmod(folder, 0o755)
        server = PrivateServer(Path(folder) / "server")
        yield server
        server.stop()


def load_dump(origin: str, target: str) -> None:
    dump = [str(programs() / "pg_dump"), "--schema=mam", origin]
    dumped = subprocess.run(dump, capture_output=True, check=True)
    load = [str(programs() / "psql"), "--quiet", "--set=ON_ERROR_STOP=1", target]
    subprocess.run(load, input=dumped.stdout, capture_output=True, check=True)


def test_a_dump_in_a_younger_server(server: PrivateServer, younger: PrivateServer, tmp_path: Path) -> None:
    origin, target = server.empty_database(), younger.url()
    create_postgres_store(origin)
    store = PostgresStore(origin)
    logs = AuditLog(str(tmp_path / "logs"))
    registry = Registry(store, logs)
    first = registry.register(prompt="first", agent="shell").job.job_id
    registry.publish(first, event="progress", detail="before the dump")
    second = register_and_claim(registry, label="ended").job_id
    registry.complete(second, attempt=1)
    heard = store.events(second)
    told = [(entry.number, entry.job_id, entry.lines) for entry in store.entries(None)]
    store.close()
    load_dump(origin, target)

    store = PostgresStore(target)
    assert [(entry.number, entry.job_id, entry.lines) for entry in store.entries(None)] == told, "in their order"
    assert store.events(second) == heard != []
    behind = store.end_offset()
    registry = Registry(store, logs)
    registry.complete(first)
    third = registry.register(prompt="third", agent="shell").job.job_id
    assert [entry.job_id for entry in store.entries(behind)] == [first, third]
    lines = (tmp_path / "logs" / first / "events.ndjson").read_text(encoding="utf-8")
    assert lines.count("before the dump") == 1, "a follower of the old journal reports nothing twice"
    assert '"to":"completed"' in lines.replace(" ", "")
    assert len(list(store.select(Query()))) == 3
    store.close()
