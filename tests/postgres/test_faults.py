"""The server goes away in the middle of every verb: the act happens once, or is reported as not done; never twice."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest

from mam.errors import StoreUnavailable
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.port import Query
from mam.stores.postgres import limits
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import check_journal
from tests.postgres.crashes import (
    AFTER,
    BEFORE,
    DisturbedStore,
    Once,
    crash,
    crash_and_restart,
    disturbed,
    end_backend,
    lose_the_answer,
)
from tests.postgres.server import PrivateServer
from tests.sample_jobs import READERS, WRITERS, JobHistory, SampleJobs

WRITES = "INSERT INTO mam.journal"
"""In every statement that writes, alone or in a transaction."""

BACKEND_FAULTS: dict[str, Callable[[str, DisturbedStore], None]] = {
    "the backend ends": lambda url, store: end_backend(url, store.backend()),
    "the connection is closed": lambda url, store: store.hang_up(),
    "the answer is lost": lambda url, store: lose_the_answer(store),
}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAUSE_SECONDS", 0.001)


class World:
    """A database, a store that is disturbed, and a judge who looks at it from elsewhere."""

    def __init__(self, url: str) -> None:
        self.url = url
        create_postgres_store(url)
        self.store = DisturbedStore(url)
        self.registry = Registry(self.store)
        self._numbers = itertools.count(1)

    def sample(self) -> SampleJobs:
        return SampleJobs(self.registry, f"run {next(self._numbers)}")

    def told(self, sample: SampleJobs) -> JobHistory:
        judge = PostgresStore(self.url)
        try:
            return sample.history(judge)
        finally:
            judge.close()

    def check(self) -> None:
        judge = PostgresStore(self.url)
        check_journal(judge)
        judge.close()

    def undisturbed(self, verb: str) -> tuple[JobHistory, list[tuple[str, str]]]:
        """What the verb does when nothing happens, and the moments of it: each statement, before and after."""
        sample, moments = self.sample(), list[tuple[str, str]]()
        with disturbed(self.store, lambda statement, when: moments.append((statement, when))):
            WRITERS[verb](self.registry, sample)
        return self.told(sample), moments


@pytest.fixture
def world(database: str) -> Iterator[World]:
    world = World(database)
    yield world
    world.store.close()


@pytest.mark.parametrize("verb", WRITERS)
@pytest.mark.parametrize("fault", ["the backend ends", "the answer is lost"])
def test_a_writer_disturbed_at_any_moment_acts_exactly_once(world: World, verb: str, fault: str) -> None:
    expected, moments = world.undisturbed(verb)
    for moment in range(1, len(moments) + 1):
        if fault == "the answer is lost" and moments[moment - 1][1] == BEFORE:
            continue
        sample = world.sample()
        once = Once(moment, lambda: BACKEND_FAULTS[fault](world.url, world.store))
        with disturbed(world.store, once):
            WRITERS[verb](world.registry, sample)
        assert once.reached
        assert world.told(sample) == expected, f"{fault} {moments[moment - 1]}"
    world.check()


@pytest.mark.parametrize("verb", WRITERS)
def test_a_connection_found_closed_at_any_moment_loses_nothing(world: World, verb: str) -> None:
    expected, moments = world.undisturbed(verb)
    for moment in range(1, len(moments) + 1):
        sample = world.sample()
        with disturbed(world.store, Once(moment, world.store.hang_up)):
            WRITERS[verb](world.registry, sample)
        assert world.told(sample) == expected, f"closed {moments[moment - 1]}"
    world.check()


@pytest.mark.parametrize("verb", READERS)
@pytest.mark.parametrize("fault", BACKEND_FAULTS)
def test_a_reader_disturbed_at_any_moment_simply_asks_again(world: World, verb: str, fault: str) -> None:
    sample = world.sample()
    expected = READERS[verb](world.registry, sample)
    for moment in itertools.count(1):
        once = Once(moment, lambda: BACKEND_FAULTS[fault](world.url, world.store))
        with disturbed(world.store, once):
            found = READERS[verb](world.registry, sample)
        assert found == expected
        if not once.reached:
            break
    assert moment > 2, "the seam no longer reaches the statements"


def at(word: str, when: str, happen: Callable[[], None]) -> Callable[[str, str], None]:
    """Lets something happen once, at the first statement that says so."""
    left = [happen]

    def disturb(statement: str, now: str) -> None:
        if left and word in statement and now == when:
            left.pop()()

    return disturb


@pytest.fixture
def crashing(server: PrivateServer) -> Iterator[World]:
    """On a server that writes nothing to disk before a commit, so that a crash loses all the rest."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        connection.execute("SELECT pg_reload_conf()")
        # Else the first crash has to go through everything that the tests before it have written.
        connection.execute("CHECKPOINT")
    world = World(server.empty_database())
    yield world
    world.store.close()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM RESET wal_writer_delay")
        connection.execute("SELECT pg_reload_conf()")


@pytest.mark.parametrize("verb", WRITERS)
def test_a_server_killed_and_restarted_in_the_middle_of_a_writer(
    server: PrivateServer, crashing: World, verb: str
) -> None:
    expected, moments = crashing.undisturbed(verb)
    for word, when in ((WRITES, BEFORE), (_last_write(moments), BEFORE)):
        sample = crashing.sample()
        with disturbed(crashing.store, at(word, when, lambda: crash_and_restart(server))):
            WRITERS[verb](crashing.registry, sample)
        assert crashing.told(sample) == expected
    crashing.check()


def _last_write(moments: list[tuple[str, str]]) -> str:
    """The statement that makes the verb durable: its only write, or the commit of a transaction."""
    return "COMMIT" if ("COMMIT", BEFORE) in moments else WRITES


def test_a_server_killed_after_a_commit_whose_answer_was_lost(server: PrivateServer, crashing: World) -> None:
    for verb in WRITERS:
        expected, moments = crashing.undisturbed(verb)
        sample = crashing.sample()

        def die_unheard() -> None:
            crash_and_restart(server)
            lose_the_answer(crashing.store)

        with disturbed(crashing.store, at(_last_write(moments), AFTER, die_unheard)):
            WRITERS[verb](crashing.registry, sample)
        assert crashing.told(sample) == expected
    crashing.check()


def test_a_server_killed_and_restarted_in_the_middle_of_every_reader(server: PrivateServer, crashing: World) -> None:
    sample = crashing.sample()
    for verb, read in READERS.items():
        expected = read(crashing.registry, sample)
        with disturbed(crashing.store, Once(1, lambda: crash_and_restart(server))):
            assert read(crashing.registry, sample) == expected, verb


@pytest.mark.parametrize(("verb", "word"), [("register", WRITES), ("complete", WRITES), ("pick", "COMMIT")])
@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_a_server_that_stays_away_is_reported_and_nothing_is_half_done(
    server: PrivateServer, crashing: World, monkeypatch: pytest.MonkeyPatch, verb: str, word: str, when: str
) -> None:
    monkeypatch.setattr(limits, "PATIENCE_SECONDS", 0.05)
    expected, _moments = crashing.undisturbed(verb)
    sample = crashing.sample()

    def die() -> None:
        crash(server)
        if when == AFTER:
            lose_the_answer(crashing.store)

    try:
        with disturbed(crashing.store, at(word, when, die)), pytest.raises(StoreUnavailable) as caught:
            WRITERS[verb](crashing.registry, sample)
    finally:
        server.start()
    assert "\n" not in str(caught.value)
    assert crashing.told(sample) == (expected if when == AFTER else [])
    crashing.check()


def test_mam_stops_retrying_a_backend_that_dies_at_every_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATIENCE_SECONDS", 0.05)
    deaths = itertools.count(1)

    def die(statement: str, when: str) -> None:
        if WRITES in statement and when == BEFORE:
            assert next(deaths) < 30, "it would go on for ever"
            end_backend(world.url, world.store.backend())

    with disturbed(world.store, die), pytest.raises(StoreUnavailable):
        world.registry.register(prompt="p", agent="codex")


def test_a_wait_survives_lost_backends_and_a_restart(server: PrivateServer, crashing: World) -> None:
    job_id = crashing.registry.register(prompt="awaited", agent="codex").job.job_id
    seen: list[Status] = []
    waiter = PostgresStore(crashing.url)
    thread = threading.Thread(target=lambda: seen.extend(job.status for job in Registry(waiter).follow([job_id])))
    thread.start()
    for _ in range(3):
        end_backend(crashing.url, _listener(crashing.url))
    _listener(crashing.url)
    crash_and_restart(server)
    _listener(crashing.url)
    other = Registry(PostgresStore(crashing.url))
    other.complete(job_id)
    thread.join(60)
    assert seen[-1] is Status.COMPLETED
    other.store.close()
    waiter.close()


def test_a_wait_that_starts_during_a_restart_succeeds(server: PrivateServer, crashing: World) -> None:
    offset = crashing.store.end_offset()
    crash(server)
    starting = threading.Thread(target=server.start)
    starting.start()
    try:
        assert crashing.store.wait(offset, 5.0)
    finally:
        starting.join()


def _listener(url: str) -> int:
    """The backend of a process that waits for notifications, once there is one."""
    query = (  # a waiter holds the listeners' lock while its connection is idle
        "SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND classid = 7168365"
        " AND objid = 2 AND granted AND state = 'idle' AND application_name = 'mam'"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        while not (found := connection.execute(query).fetchall()):
            pass
    return int(found[0][0])


def test_a_restart_between_two_verbs_is_not_noticed(server: PrivateServer, crashing: World) -> None:
    job_id = crashing.registry.register(prompt="p", agent="codex").job.job_id
    crash_and_restart(server)
    assert crashing.registry.get(job_id).status is Status.PENDING
    server.stop("fast")
    server.start()
    assert crashing.registry.complete(job_id).status is Status.COMPLETED
    assert [job.job_id for job in crashing.registry.select(Query())] == [job_id]
