"""What mam asks of a server: connections, round trips, and how many processes a new job wakes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from mam.jobs.record import Job
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.interest import Interest
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import register_jobs
from mam.testing.tasks import LABEL
from tests.cli.command import Mam
from tests.postgres.crashes import BEFORE, DisturbedStore
from tests.postgres.proxy import Proxy
from tests.postgres.server import PrivateServer

STATEMENTS_OF_ONE = 2
"""What one waiting process sends for a new job, while no other waits."""

MOST_TRIPS = 6
"""Four to connect and log in, two for the verb."""


# -- wake-ups ----------------------------------------------------------------------------------------------------------


class Waiting:
    """Processes that wait for a job of one label: each has a connection of its own, and counts what it sends."""

    def __init__(self, url: str, count: int, beside: int = 0) -> None:
        """`beside`: others that wait already."""
        self.sent = 0
        self.got: list[str] = []
        self.stores = [DisturbedStore(url) for _ in range(count)]
        self._first = threading.Event()
        self._threads = [threading.Thread(target=self._pick, args=(one,)) for one in self.stores]
        for thread in self._threads:
            thread.start()
        wait_for_waiters(url, count + beside)
        for one in self.stores:
            one.disturb = self._count

    def _pick(self, store: DisturbedStore) -> None:
        job = Registry(store).pick(LABEL, owner="me", wait=60)
        if job is not None:
            self.got.append(job.job_id)
            self._first.set()

    def _count(self, _statement: str, when: str) -> None:
        self.sent += when == BEFORE

    def until_one_has_it(self) -> None:
        assert self._first.wait(60)

    def finish(self, registry: Registry) -> None:
        register_jobs(registry, len(self.stores) - len(self.got))
        for thread in self._threads:
            thread.join(60)
        for one in self.stores:
            one.close()


def wait_for_waiters(url: str, count: int) -> None:
    """Until so many sleep: each has asked when the next job is due, and nothing since."""
    asked = (
        "SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE locktype = 'advisory' AND classid = 7168364 AND state = 'idle'"
        " AND state_change < now() - interval '200 ms'"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute(asked.encode()).fetchone() != (count,):
            time.sleep(0.05)


def sent_for_one_job(url: str, waiters: int) -> int:
    store = PostgresStore(url)
    waiting = Waiting(url, waiters)
    register_jobs(Registry(store))
    waiting.until_one_has_it()
    wait_for_waiters(url, waiters)
    sent = waiting.sent
    assert len(waiting.got) == 1
    waiting.finish(Registry(store))
    assert len(set(waiting.got)) == waiters
    store.close()
    return sent


@pytest.mark.parametrize("waiters", [1, 25, 100])
def test_a_new_job_makes_few_of_many_waiting_processes_look_for_it(url: str, waiters: int) -> None:
    """The one that looks first sends two statements, and gets it. Only one that looks in vain sends more: four."""
    assert sent_for_one_job(url, waiters) <= 3 * STATEMENTS_OF_ONE


def test_a_job_does_not_depend_on_the_process_that_is_to_look_first(url: str) -> None:
    with ExitStack() as stack:
        for _ in range(19):  # which wait as far as the server knows, and never look
            deaf = stack.enter_context(psycopg.connect(url, autocommit=True))
            deaf.execute("SELECT pg_advisory_lock_shared(7168364, hashtext(%s))", (LABEL,))
        waiting = Waiting(url, 1, beside=19)
        register_jobs(Registry(waiting.stores[0]))
        waiting.until_one_has_it()
        waiting.finish(Registry(waiting.stores[0]))


def test_a_job_of_another_label_wakes_no_one(store: DisturbedStore, url: str) -> None:
    waiting = Waiting(url, 3)
    jobs = register_jobs(Registry(store), 2, label="another")
    Registry(store).cancel(jobs[0])
    register_jobs(Registry(store))
    waiting.until_one_has_it()
    wait_for_waiters(url, 3)
    assert waiting.sent <= 3 * 8
    waiting.finish(Registry(store))


def test_nothing_is_sent_to_the_server_s_queue_while_no_one_listens(store: DisturbedStore, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as ear:
        ear.execute("LISTEN mam_news")  # without the lock by which mam's own processes say that they listen
        register_jobs(Registry(store))
        assert list(ear.notifies(timeout=0.2)) == []


@pytest.mark.parametrize("act", ["cancel", "another label"])
def test_a_holder_learns_of_changes_to_its_job_only(store: DisturbedStore, url: str, act: str) -> None:
    mine, other = register_jobs(Registry(store), label="mine"), register_jobs(Registry(store), label="other")
    waiter, woken = PostgresStore(url), list[bool]()
    interest = Interest(labels=("mine",), is_free=lambda: False, holds=mine.__contains__)
    listens = threading.Event()

    def wait() -> None:
        assert waiter.wait("0", 0.01, interest), "the first call of a thread looks once more"
        listens.set()
        woken.append(waiter.wait("0", 60.0 if act == "cancel" else 0.3, interest))

    thread = threading.Thread(target=wait)
    thread.start()
    assert listens.wait(60)
    Registry(store).cancel(mine[0] if act == "cancel" else other[0])
    thread.join(30)
    assert woken == [act == "cancel"]
    waiter.close()


@pytest.mark.parametrize("way", ["a dependency", "an exclusive key", "a pause"])
def test_an_act_that_frees_a_job_wakes_its_waiters(store: DisturbedStore, url: str, way: str) -> None:
    registry = Registry(store)
    free = _held_back(registry, way)
    waiting = Waiting(url, 1)
    free()
    waiting.until_one_has_it()
    waiting.finish(registry)


def _held_back(registry: Registry, way: str) -> Any:
    from mam.jobs.pause import Pause

    if way == "a pause":
        registry.pause(Pause(agent="claude-code"))
        register_jobs(registry)
        return lambda: registry.resume("claude-code", None)
    first = registry.register(prompt="p", agent="codex", label="other", exclusive="gpu").job
    assert registry.pick("other", owner="me") is not None
    register_jobs(registry, **({"after": [first.job_id]} if way == "a dependency" else {"exclusive": "gpu"}))
    return lambda: registry.complete(first.job_id, attempt=1)


# -- connections -------------------------------------------------------------------------------------------------------


def test_a_worker_has_one_connection_at_rest_and_at_most_two_at_work(url: str, tmp_path: Path) -> None:
    mam = Mam(tmp_path, tmp_path)
    store, gate = PostgresStore(url), tmp_path / "gate"
    worker = mam.start("worker", "--agent-session", "shell", "--store", url)
    try:
        wait_for_waiters(url, 1)
        assert connections_of_others(url, store) == 1
        job = Registry(store).register(prompt=f"until test -e {gate}; do sleep 0.05; done", agent="shell").job
        _await(lambda: store.get(job.job_id).status is Status.RUNNING)
        assert connections_of_others(url, store) <= 2
        gate.touch()
        _await(lambda: store.get(job.job_id).status is Status.COMPLETED)
        assert connections_of_others(url, store) <= 2
    finally:
        worker.terminate()
        worker.communicate(timeout=60)
        store.close()


def connections_of_others(url: str, store: PostgresStore) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mam'"
        row = connection.execute(asked).fetchone()
    assert row is not None
    return int(row[0]) - 1


def _await(holds: Any) -> None:
    ends = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)


# -- round trips -------------------------------------------------------------------------------------------------------


@contextmanager
def counting(server: PrivateServer) -> Iterator[tuple[Proxy, str]]:
    url = server.empty_database()
    create_postgres_store(url)
    before, _, folder = url.rpartition("host=")
    with TemporaryDirectory(prefix="mam-px-") as here:
        proxy = Proxy(Path(here), Path(folder))
        yield proxy, f"{before}host={here}"
        proxy.close()


def _claimed(registry: Registry) -> Job:
    registry.register(prompt="p", agent="codex", label=LABEL)
    job = registry.pick(LABEL, owner="me")
    assert job is not None
    return job


@pytest.mark.parametrize("verb", ["register", "pick", "heartbeat", "publish", "complete"])
def test_a_verb_takes_few_round_trips(server: PrivateServer, tmp_path: Path, verb: str) -> None:
    assert 0 < _trips(server, tmp_path, verb) <= MOST_TRIPS


def _trips(server: PrivateServer, tmp_path: Path, verb: str) -> int:
    with counting(server) as (proxy, address):
        mam, judge = Mam(tmp_path, tmp_path), PostgresStore(server.url())
        registry = Registry(judge)
        assert (
            mam("register", "p", "--agent", "codex", "--store", address).code == 0
        )  # the log now follows this journal
        words = {"register": ["p", "--agent", "codex"], "pick": ["--agent-session", LABEL]}.get(verb)
        if words is None:
            job = _claimed(registry)
            words = [job.job_id, "--attempt", "1"]
            words = {"publish": [job.job_id, "progress", "--attempt", "1"]}.get(verb, words)
        else:
            register_jobs(registry)
        proxy.trips = 0
        ran = mam(verb, *words, "--store", address)
        assert ran.code == 0, ran.stderr
        judge.close()
        return proxy.trips


OF_A_JOB = ("head AS", "WITH written", "WITH ended", "holder AS", "FROM mam.job WHERE job_id")
"""In the claim, a change, the end, a piece of output, a read."""


def statements_about_jobs(log: str) -> int:
    parts = [part for part in log.split("LOG:  ") if part.startswith(("statement:", "execute "))]
    return sum(any(word in " ".join(part.split()) for word in OF_A_JOB) for part in parts)


@pytest.mark.parametrize("script", ["echo hello", "sleep 0.3; echo hello"], ids=["short", "long"])
def test_a_job_of_a_worker_takes_five_round_trips(server: PrivateServer, tmp_path: Path, script: str) -> None:
    """A claim, the start (a read and a write; the end of a short job has it), the output, the end. Beside these, the
    worker reads the journal for the audit log, at most twice a second for all its jobs."""
    url = server.empty_database()
    create_postgres_store(url)
    mam, store = Mam(tmp_path, tmp_path), PostgresStore(url)
    log = server.folder / "log"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        connection.execute("SELECT pg_reload_conf()")
    counts = {}
    try:
        for count in (1, 6):
            for _ in range(count):
                Registry(store).register(prompt=script, agent="shell")
            before = log.stat().st_size
            ran = mam("worker", "--agent-session", "shell", "--drain", "--store", url)
            assert ran.code == 0, ran.stderr
            counts[count] = statements_about_jobs(log.read_bytes()[before:].decode())
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM RESET log_statement")
            connection.execute("SELECT pg_reload_conf()")
        store.close()
    assert 3 <= (counts[6] - counts[1]) / 5 <= 5, counts


def test_a_list_of_fifty_downloads_fifty(store: DisturbedStore) -> None:
    from itertools import islice

    from mam.stores.port import Query

    register_jobs(Registry(store), 60)
    sent: list[str] = []
    store.disturb = lambda statement, when: sent.append(statement) if when == BEFORE else None
    assert len(list(islice(store.select(Query()), 50))) == 50
    assert len(sent) == 1
