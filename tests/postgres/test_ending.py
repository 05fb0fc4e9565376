"""A store that ends what it has claimed does so in one trip, decided before it: still once, fenced, and told to all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial

import psycopg
import pytest

from mam.errors import ClaimLost
from mam.jobs.record import Job
from mam.jobs.status import Status
from mam.jobs.supervised import Ending, finish
from mam.registry import Registry
from mam.stores.port import Kept, Query, Request
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import check_journal, registered, terminal_events
from mam.testing.tasks import LABEL
from tests.postgres.crashes import (
    AFTER,
    BEFORE,
    DisturbedStore,
    Once,
    crash_and_restart,
    disturbed,
    end_backend,
    lose_the_answer,
    wait_for_a_lock,
)
from tests.postgres.server import PrivateServer

ENDINGS: dict[str, Callable[[Registry, Job], Job]] = {
    "complete": lambda registry, job: registry.complete(job.job_id, attempt=job.attempt, result="r"),
    "fail": lambda registry, job: registry.fail(job.job_id, attempt=job.attempt, reason="broken"),
    "cancel": lambda registry, job: registry.cancel(job.job_id),
    "publish": lambda registry, job: registry.publish(job.job_id, event="completed", attempt=job.attempt),
    "finish": lambda registry, job: registry.store.change(
        job.job_id, partial(finish, attempt=job.attempt, ending=Ending(run={"exit": 0}), delay_seconds=1)
    ),
}
FAULTS: dict[str, Callable[[str, DisturbedStore], None]] = {
    "the backend ends": lambda url, store: end_backend(url, store.backend()),
    "the connection is closed": lambda url, store: store.hang_up(),
    "the answer is lost": lambda url, store: lose_the_answer(store),
}


pytestmark = pytest.mark.usefixtures("short_pauses")


@pytest.fixture
def other(url: str) -> Iterator[DisturbedStore]:
    store = DisturbedStore(url)
    yield store
    store.close()


def held(registry: Registry, *, supervised: bool = False) -> Job:
    registered(registry)
    job = registry.claim(Request(label=LABEL, owner="worker", supervised=supervised))
    assert job is not None
    return job


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_takes_one_trip(store: DisturbedStore, ending: str) -> None:
    registry = Registry(store)
    job = held(registry, supervised=ending == "finish")
    moments: list[tuple[str, str]] = []
    with disturbed(store, lambda statement, when: moments.append((statement, when))):
        ended = ENDINGS[ending](registry, job)
    assert list(store.select(Query(statuses=frozenset([ended.status])))) == [ended]
    assert [when for _statement, when in moments] == [BEFORE] * 3 + [AFTER] * 3
    assert (moments[0][0], moments[-1][0]) == ("BEGIN", "COMMIT")
    assert len(terminal_events(store, job.job_id)) == 1
    check_journal(store)


@pytest.mark.parametrize("way", ["as it was left", "as any other"])
def test_what_is_told_is_found_wherever_it_stands(store: DisturbedStore, other: DisturbedStore, way: str) -> None:
    """In a row of its own or only in the journal; and in the archive."""
    job = held(Registry(store))
    Registry(store).publish(job.job_id, event="progress", attempt=1, detail='half, "so to say"')
    Registry(store if way == "as it was left" else other).complete(job.job_id, attempt=1, result="r")
    events = other.events(job.job_id)
    assert [(event["seq"], event["event"]) for event in events] == [(1, "progress"), (2, "completed")]
    registered(Registry(store))
    assert other.archive([job.job_id]) == [job.job_id]
    kept = other.archived(job.job_id)
    assert kept is not None
    assert kept.events == events
    assert other.events(job.job_id) == []


def test_a_job_that_a_session_held_leaves_nothing_behind(store: DisturbedStore, url: str) -> None:
    registered(Registry(store), 2)
    for _ in range(2):
        job = Registry(store).pick(LABEL, owner="me", session=("agent", "first"))
        assert job is not None
        assert store._sessions.held_by("agent") == [job.job_id]
        Registry(store).complete(job.job_id, attempt=1)
    assert store._sessions.held_by("agent") == []
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT job_id FROM mam.rare").fetchall() == []


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_disturbed_at_any_moment_it_happens_once(
    store: DisturbedStore, other: DisturbedStore, url: str, ending: str, fault: str
) -> None:
    registry = Registry(store)
    for moment in range(1, 7):
        if fault == "the answer is lost" and moment <= 3:
            continue  # it cannot be lost before it was given
        job = held(registry, supervised=ending == "finish")
        once = Once(moment, lambda: FAULTS[fault](url, store))
        with disturbed(store, once):
            ended = ENDINGS[ending](registry, job)
        assert once.reached
        assert ended.status.ended
        assert other.get(job.job_id) == ended
        assert len(terminal_events(other, job.job_id)) == 1
    check_journal(other)


@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_a_server_that_is_killed_and_restarted_meanwhile(server: PrivateServer, when: str) -> None:
    url = server.empty_database()
    create_postgres_store(url)
    store = DisturbedStore(url)
    registry = Registry(store)
    job = held(registry)

    def die() -> None:
        crash_and_restart(server)
        if when == AFTER:
            lose_the_answer(store)

    left = [die]
    with disturbed(
        store, lambda statement, now: left.pop()() if left and (statement, now) == ("COMMIT", when) else None
    ):
        assert registry.complete(job.job_id, attempt=1).status is Status.COMPLETED
    assert left == []
    assert len(terminal_events(store, job.job_id)) == 1
    check_journal(store)
    store.close()


# -- others have been there meanwhile ----------------------------------------------------------------------------------


def test_a_claim_that_was_lost_meanwhile_is_told(store: DisturbedStore, other: DisturbedStore) -> None:
    registered(Registry(store))
    job = Registry(store).pick(LABEL, owner="me", lease_seconds=0)
    assert job is not None
    taken = Registry(other).pick(LABEL, owner="other")
    assert taken is not None
    with pytest.raises(ClaimLost, match="attempt 2 has taken over"):
        Registry(store).complete(job.job_id, attempt=1)
    assert other.get(job.job_id) == taken
    check_journal(other)


def test_it_builds_on_what_somebody_else_wrote_meanwhile(store: DisturbedStore, other: DisturbedStore) -> None:
    job = held(Registry(store))
    assert Registry(other).next_seq(job.job_id) == 1
    ended = Registry(store).complete(job.job_id, attempt=1)
    assert (ended.status, ended.last_seq) == (Status.COMPLETED, 2)
    assert [event["seq"] for event in other.events(job.job_id)] == [1, 2]
    check_journal(other)


def test_what_somebody_else_ended_is_refused(store: DisturbedStore, other: DisturbedStore) -> None:
    job = held(Registry(store))
    Registry(other).cancel(job.job_id)
    with pytest.raises(ClaimLost, match="cancelled"):
        Registry(store).complete(job.job_id, attempt=1)
    assert len(terminal_events(other, job.job_id)) == 1


def test_the_servers_clock_counts_and_not_the_guess(store: DisturbedStore, other: DisturbedStore) -> None:
    job = held(Registry(store))
    assert store._ahead_ms is not None
    store._ahead_ms -= 3_600_000
    ended = Registry(store).complete(job.job_id, attempt=1)
    assert ended.ended_at is not None
    assert ended.ended_at >= str(job.claimed_at)
    assert other.get(job.job_id) == ended


def test_an_act_that_comes_to_nothing_is_judged_by_the_job_as_it_is(
    store: DisturbedStore, other: DisturbedStore
) -> None:
    """The guess says running, but the job was handed back and claimed by this very attempt's successor."""
    job = held(Registry(store))
    Registry(other).release(job.job_id, attempt=1)
    with pytest.raises(ClaimLost, match="the job is pending"):
        Registry(store).fail(job.job_id, attempt=1, reason="r")
    assert other.get(job.job_id).status is Status.PENDING


# -- those that come after it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [0, 1], ids=["as the first", "as the second"])
@pytest.mark.parametrize("way", ["as it was left", "as any other"])
def test_who_registers_behind_a_job_that_is_just_ending_is_told(
    store: DisturbedStore, other: DisturbedStore, url: str, way: str, before: int
) -> None:
    """The registration has seen that the job still runs, and is not committed yet: the end has to wait for it."""
    job = held(Registry(store))
    for first in registered(Registry(other), before, after=[job.job_id]):
        Registry(other).cancel(first)
    ender = Registry(store if way == "as it was left" else PostgresStore(url))
    ending = threading.Thread(target=lambda: ender.complete(job.job_id, attempt=1))

    def meanwhile(statement: str, when: str) -> None:
        if (statement, when) == ("COMMIT", BEFORE):
            ending.start()
            wait_for_a_lock(url)

    with disturbed(other, meanwhile):
        (last,) = registered(Registry(other), after=[job.job_id])
    ending.join(60)
    assert other.get(job.job_id).status is Status.COMPLETED
    assert Registry(other).pick(LABEL, owner="me") == other.get(last)
    check_journal(other)
    ender.store.close()


@pytest.mark.parametrize("order", [1, -1], ids=["before it", "behind it"])
def test_who_was_taken_in_from_another_registry_is_told(store: DisturbedStore, order: int) -> None:
    registry = Registry(store)
    (first,) = registered(registry)
    (last,) = registered(registry, after=[first])
    taken = [Kept(job=store.get(job_id), events=[]) for job_id in (first, last)]
    store.take_in(taken[::order])
    job = registry.pick(LABEL, owner="me")
    assert job is not None
    assert job.job_id == first
    registry.complete(first, attempt=1)
    assert registry.pick(LABEL, owner="me") == store.get(last)
