"""A dump loaded into a server that is younger than the one it came from: nothing that is told there goes unheard."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from mam.audit.mirror import AuditLog
from mam.errors import StoreUnavailable
from mam.registry import Registry
from mam.stores.port import Query
from mam.stores.postgres.store import create_postgres_store
from mam.testing.conformance.base import claimed
from tests.doctor.ward import Ward
from tests.postgres.server import PrivateServer, programs
from tests.postgres.settled import SettledStore


@pytest.fixture
def younger() -> Iterator[PrivateServer]:
    with TemporaryDirectory(prefix="mam-pg-") as folder:
        os.chmod(folder, 0o755)
        server = PrivateServer(Path(folder) / "server")
        yield server
        server.stop()


def grow_older(url: str) -> None:
    """A server that has done a while's work: its transactions have high numbers."""
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(1000):
            connection.execute("SELECT pg_current_xact_id()")


def load_dump(origin: str, target: str) -> None:
    dump = [str(programs() / "pg_dump"), "--schema=mam", origin]
    dumped = subprocess.run(dump, capture_output=True, check=True)
    load = [str(programs() / "psql"), "--quiet", "--set=ON_ERROR_STOP=1", target]
    subprocess.run(load, input=dumped.stdout, capture_output=True, check=True)


def test_a_dump_in_a_younger_server(server: PrivateServer, younger: PrivateServer, tmp_path: Path) -> None:
    origin, target = server.empty_database(), younger.url()
    create_postgres_store(origin)
    grow_older(origin)
    store = SettledStore(origin)
    logs = AuditLog(str(tmp_path / "logs"))
    registry = Registry(store, logs)
    first = registry.register(prompt="first", agent="shell").job.job_id
    registry.publish(first, event="progress", detail="before the dump")
    second = claimed(registry, label="ended").job_id
    registry.complete(second, attempt=1)
    heard = store.events(second)
    told = [(entry.number, entry.job_id, entry.lines) for entry in store.entries(None)]
    store.close()
    load_dump(origin, target)

    with pytest.raises(StoreUnavailable, match=r"dump of another server.*`mam init --store "):
        SettledStore(target)
    place = Ward(tmp_path, tmp_path)
    found = place.examined(MAM_STORE=target).of("store", "wrong")
    assert found["mend"].startswith("mam init --store postgresql://")
    assert place("init").code == 0
    assert place.examined().of("store", "fine")

    store = SettledStore(target)
    assert [(entry.number, entry.job_id, entry.lines) for entry in store.entries(None)] == told, "in their order"
    assert store.events(second) == heard != []
    behind = store.end()
    registry = Registry(store, logs)
    registry.complete(first)
    third = registry.register(prompt="third", agent="shell").job.job_id
    assert [entry.job_id for entry in store.entries(behind)] == [first, third]
    lines = (tmp_path / "logs" / first / "events.ndjson").read_text(encoding="utf-8")
    assert lines.count("before the dump") == 1, "whoever followed the old journal tells nothing twice"
    assert '"to":"completed"' in lines.replace(" ", "")
    assert len(list(store.select(Query()))) == 3
    store.close()
    assert not create_postgres_store(target), "once is enough"
