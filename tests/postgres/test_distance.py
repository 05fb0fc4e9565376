"""A server that is 50 ms away, over TCP, and connections that break: every verb and a worker do their work once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.registry import Registry
from mam.stores.port import Query
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import check_journal
from tests.postgres.proxy import Proxy
from tests.sample_jobs import READERS, WRITERS, SampleJobs
from tests.waiting import await_that
from tests.work.support import PidPipe
from tests.work.worker_commands import Working

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.command import Mam
    from tests.postgres.server import PrivateServer
    from tests.waiting import Gate

TRIP_SECONDS = 0.05
CUTS, JOBS = 3, 6


@pytest.fixture
def far(server: PrivateServer) -> Iterator[Proxy]:
    create_postgres_store(server.empty_database())
    proxy = Proxy(None, server.folder, TRIP_SECONDS)
    yield proxy
    proxy.close()


@pytest.fixture
def judge(far: Proxy, server: PrivateServer) -> Iterator[PostgresStore]:
    store = PostgresStore(server.url())
    yield store
    check_journal(store)
    store.close()


def test_every_verb_works_and_survives_a_cut(far: Proxy, judge: PostgresStore) -> None:
    store = PostgresStore(far.tcp_url)
    registry = Registry(store)
    for name, verb in {**WRITERS, **READERS}.items():
        near = SampleJobs(Registry(judge), f"near {name}")
        verb(Registry(judge), near)
        expected = near.history(judge)
        sample = SampleJobs(Registry(judge), f"far {name}")
        far.cut()
        verb(registry, sample)
        assert sample.history(judge) == expected, name
    store.close()


def test_a_worker_keeps_its_agents_and_ends_each_job_once(
    far: Proxy, judge: PostgresStore, mam: Mam, tmp_path: Path, gate: Gate
) -> None:
    mam.env["MAM_STORE"] = far.tcp_url
    registry, pids = Registry(judge), PidPipe(tmp_path)
    script = f"echo $$ > {pids.path}; {gate.wait}"
    for _ in range(JOBS):
        registry.register(prompt=script, agent="shell", workdir=str(tmp_path))
    with Working(mam, "-s", "shell", "--concurrency", "2", "--lease", "20"):
        for _ in range(CUTS):
            pids.processes(2)
            far.cut()
            gate.open(2)
        await_that(lambda: all(job.status.ended for job in judge.select(Query())))
    assert [(job.status, job.attempt) for job in judge.select(Query())] == [("completed", 1)] * JOBS
    pids.close()
