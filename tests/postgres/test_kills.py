"""Backends and whole servers die under a mixed load of several processes: nothing is lost, nothing is accepted twice.

`MAM_KILLS=200` makes it two hundred backends and twenty servers.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg

from mam.registry import Registry
from mam.stores.port import Query
from mam.stores.postgres import limits
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import check_journal
from mam.testing.races import RacePool
from mam.testing.tasks import LAST
from tests.postgres.crashes import crash_and_restart
from tests.postgres.server import PrivateServer
from tests.waiting import await_that

if TYPE_CHECKING:
    from mam.stores.port import Store
    from mam.testing.races import Racer

WORKERS = 4
KILLS = int(os.environ.get("MAM_KILLS", "20"))
CRASHES = max(1, KILLS // 10)
POOL = "pool"
PATIENCE = 240.0
LINES_OF_A_JOB = 5
"""Registered, claimed, a number, a word, the end."""


def open_patient_store(url: str) -> Store:
    """On a busy machine a server may take long to start again. How long a client waits for it is not tested here."""
    limits.PATIENCE_SECONDS = PATIENCE
    return PostgresStore(url)


def work(store: Store, _report: Callable[[object], None], *, name: str) -> list[tuple[str, str, int]]:
    """Registers into one pool and takes from it, until told to stop; returns every act that was acknowledged."""
    registry = Registry(store)
    done: list[tuple[str, str, int]] = []
    while not store.ids_with_prefix(LAST, 1):
        job = registry.register(prompt="p" * 2000, agent="codex", label=POOL).job
        done.append(("registered", job.job_id, 0))
        claimed = registry.pick(POOL, owner=name)
        if claimed is None:
            continue  # a dying backend still holds the rows
        done.append(("claimed", claimed.job_id, claimed.attempt))
        done.append(("numbered", claimed.job_id, registry.next_seq(claimed.job_id)))
        registry.heartbeat(claimed.job_id, attempt=claimed.attempt)
        spoken = registry.publish(claimed.job_id, event="progress", detail=name, attempt=claimed.attempt)
        done.append(("spoken", claimed.job_id, spoken.last_seq))
        ended = registry.complete(claimed.job_id, attempt=claimed.attempt, result=name)
        done.append(("ended", claimed.job_id, ended.last_seq))
    return done


class Killer:
    """Looks for victims in the middle of something, from a connection that may die with them."""

    def __init__(self, server: PrivateServer, workers: list[Racer]) -> None:
        self._server = server
        self._workers = workers
        self._connection: psycopg.Connection[Any] | None = None

    def end_a_backend(self) -> None:
        self._until(f"SELECT pg_terminate_backend(pid) {self._VICTIM}", lambda found: bool(found))

    def kill_a_backend(self) -> None:
        """SIGKILL: the postmaster then ends all others too, since shared memory may be spoilt."""
        found = self._until(f"SELECT pid {self._VICTIM}", lambda found: bool(found))
        try:
            os.kill(int(found[0][0]), signal.SIGKILL)
        except ProcessLookupError:
            self.kill_a_backend()

    def kill_the_server(self) -> None:
        self._until("SELECT 1", lambda found: True)
        crash_and_restart(self._server)

    def let_them_work(self, lines: int) -> None:
        """Until the journal has grown by so much."""
        query = "SELECT count(*) FROM mam.journal"
        wanted = int(self._until(query, lambda found: True)[0][0]) + lines
        self._until(query, lambda found: int(found[0][0]) >= wanted)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _until(self, query: str, enough: Callable[[list[Any]], bool]) -> list[Any]:
        found: list[Any] = []

        def is_enough() -> bool:
            for worker in self._workers:
                worker.check()  # without workers there is no victim and no progress to wait for
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = psycopg.connect(self._server.url(), autocommit=True, application_name="killer")
                found[:] = self._connection.execute(query.encode()).fetchall()
            except psycopg.OperationalError:
                return False  # the server is starting again
            return enough(found)

        await_that(is_enough, query, longest=PATIENCE)
        return found

    _VICTIM = (
        "FROM pg_stat_activity WHERE application_name = 'mam' AND state IN ('active', 'idle in transaction')"
        " ORDER BY random() LIMIT 1"
    )


def test_kills_during_a_mixed_load_lose_nothing_and_repeat_nothing(server: PrivateServer) -> None:
    url = server.empty_database()
    create_postgres_store(url)
    with psycopg.connect(url, autocommit=True) as connection:
        # Else the first crash replays all that earlier tests have written, which may outlast a worker's patience.
        connection.execute("CHECKPOINT")
    with RacePool(partial(open_patient_store, url), processes=True) as pool:
        workers = pool.race_on([partial(work, name=f"worker {number}") for number in range(WORKERS)])
        killer = Killer(server, workers)
        for kill in range(1, KILLS + 1):
            killer.end_a_backend()
            killer.let_them_work(WORKERS)
            if kill % 10 == 5:
                killer.kill_a_backend()
                killer.let_them_work(WORKERS)
            if kill % 10 == 0:
                killer.kill_the_server()
                killer.let_them_work(WORKERS * LINES_OF_A_JOB)
        judge = PostgresStore(url)
        Registry(judge).register(prompt="stop", agent="codex", label=LAST, job_id=LAST)
        done = [act for worker in workers for act in worker.result()]
    killer.close()
    check_acknowledged(judge, done)
    check_journal(judge)
    judge.close()


def check_acknowledged(judge: Store, done: list[tuple[str, str, int]]) -> None:
    """Exactly what was acknowledged is there: no job more, no claim twice, no number twice, no event twice."""
    acts = Counter(done)
    assert set(acts.values()) == {1}, [act for act, times in acts.items() if times > 1]
    registered = {job_id for act, job_id, _ in done if act == "registered"}
    jobs = {job.job_id: job for job in judge.select(Query(label=POOL))}
    assert jobs.keys() == registered
    claimed = {job_id: attempt for act, job_id, attempt in done if act == "claimed"}
    for job_id, job in jobs.items():
        if job_id not in claimed:
            assert (job.status, job.attempt, job.last_seq) == ("pending", 0, 0), job
            continue
        assert (job.status, job.attempt, job.last_seq, claimed[job_id]) == ("completed", 1, 3, 1), job
        assert {("numbered", job_id, 1), ("spoken", job_id, 2), ("ended", job_id, 3)} <= acts.keys()
        assert [event.get("event") for event in judge.events(job_id)] == [None, "progress", "completed"]
