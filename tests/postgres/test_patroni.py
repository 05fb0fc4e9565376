"""Patroni promotes a standby: an agent survives, and no acknowledged job is lost. `make patroni` runs it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from mam.errors import StoreUnavailable
from mam.registry import Registry
from mam.stores.port import Query
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import check_journal
from tests.postgres.patroni import Cluster
from tests.waiting import Gate, await_that
from tests.work.support import PidPipe
from tests.work.worker_commands import Working, ended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.command import Mam

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(not os.environ.get("MAM_PATRONI"), reason="`make patroni` runs it"),
]

JOBS = 20


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with TemporaryDirectory(prefix="mam-pt-") as name:
        os.chmod(name, 0o755)
        cluster = Cluster(Path(name))
        yield cluster
        cluster.stop()


def test_a_takeover_ends_no_agent_and_loses_no_job(cluster: Cluster, mam: Mam, gate: Gate, tmp_path: Path) -> None:
    create_postgres_store(cluster.url)
    mam.env["MAM_STORE"] = cluster.url
    pids, known, is_over = PidPipe(tmp_path), list[str](), threading.Event()
    job = mam.register(f"echo $$ > {pids.path}; {gate.wait}")

    def write() -> None:
        store = PostgresStore(cluster.url)
        while not is_over.is_set():
            try:
                known.append(Registry(store).register(prompt="p", agent="codex").job.job_id)
            except StoreUnavailable:  # the takeover takes longer than a command waits
                continue
        store.close()

    writer = threading.Thread(target=write)
    with Working(mam, "-s", "shell"):
        pids.processes(1)
        writer.start()
        await_that(lambda: len(known) >= JOBS)
        cluster.first.kill()
        cluster.await_takeover()
        before = len(known)
        await_that(lambda: len(known) >= before + JOBS, "the writer does not find the new primary")
        gate.open()
        record = ended(mam, job)
    is_over.set()
    writer.join()
    assert (record["status"], record["attempt"], record["losses"]) == ("completed", 1, 0)
    store = PostgresStore(cluster.url)
    assert {one.job_id for one in store.select(Query())} >= {job, *known}
    check_journal(store)
    store.close()
    pids.close()
