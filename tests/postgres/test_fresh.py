"""A job that nobody has touched yet is claimed in one trip, decided before it was seen: as any other, and once."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from mam.errors import Refused
from mam.jobs.record import Job
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.common import claimed
from mam.stores.port import Query, Request
from mam.stores.postgres.fresh import FreshClaims
from mam.stores.postgres.server_clock import moment_at
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.stores.postgres.wire import Statement, Wire
from mam.testing.conformance.base import check_journal
from tests.postgres.crashes import (
    AFTER,
    BEFORE,
    DisturbedStore,
    Once,
    crash_and_restart,
    disturbed,
    end_backend,
    lose_the_answer,
)
from tests.postgres.server import PrivateServer

if TYPE_CHECKING:
    from mam.clock import Moment
    from mam.jobs.change import Change

LABEL = "fresh"
FAULTS: dict[str, Callable[[str, DisturbedStore], None]] = {
    "the backend ends": lambda url, store: end_backend(url, store.backend()),
    "the connection is closed": lambda url, store: store.hang_up(),
    "the answer is lost": lambda url, store: lose_the_answer(store),
}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "long, with its own name": {"job_id": "A-name_of-64-letters" + "x" * 44, "workdir": "/tmp/ä€😀", "priority": 7},
    "with a key": {"key": 'a "key": "attempt":', "artifacts": ["a", "b"]},
}
REQUESTS = {
    "pick": Request(label=LABEL, owner='me "?" \\'),
    "worker": Request(label=LABEL, owner="worker", lease_seconds=60.5, supervised=True),
}
ONE_TRIP = ["BEGIN", "claim", "COMMIT"]


pytestmark = pytest.mark.usefixtures("short_pauses")


def register(store: PostgresStore, **choices: Any) -> Job:
    return Registry(store).register(prompt="p", agent="a", label=LABEL, **choices).job


def trips(store: DisturbedStore, request: Request) -> tuple[Job | None, list[str]]:
    """What a request gets, and what was sent for it."""
    sent: list[str] = []

    def hear(statement: str, when: str) -> None:
        if when == BEFORE:
            sent.append("claim" if "SET status = 'running'" in statement else statement.split()[0])

    with disturbed(store, hear):
        return Registry(store).claim(request), sent


def running(store: PostgresStore) -> list[Job]:
    return list(store.select(Query(statuses=frozenset([Status.RUNNING]))))


# -- as any other ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("kind", KINDS)
def test_it_takes_one_trip_and_is_decided_as_any_other(
    store: DisturbedStore, other: PostgresStore, kind: str, request_: Request
) -> None:
    pending = register(store, **KINDS[kind])
    job, sent = trips(store, request_)
    assert job is not None
    assert sent == ONE_TRIP
    assert job.lease is not None
    decided_at = moment_at(job.lease.wall_ms - round(job.lease.seconds * 1000))
    assert job == claimed(pending, request_, decided_at).job
    assert other.get(job.job_id) == job
    check_journal(other)
    ended = Registry(store).cancel(job.job_id)
    assert other.get(job.job_id) == ended
    check_journal(other)


def test_the_time_limit_of_the_last_job_is_expected_of_the_next(store: DisturbedStore) -> None:
    for _ in range(4):
        register(store, timeout_sec=77)
    sent = [trips(store, REQUESTS["pick"])[1] for _ in range(4)]
    assert ONE_TRIP not in sent[:2]
    assert sent[-1] == ONE_TRIP
    assert {job.lease.seconds for job in running(store) if job.lease} == {77}


def test_one_that_was_handed_back_is_looked_at(store: DisturbedStore, other: PostgresStore) -> None:
    register(store)
    job, _sent = trips(store, REQUESTS["pick"])
    assert job is not None
    Registry(other).release(job.job_id, attempt=1)
    again, sent = trips(store, REQUESTS["pick"])
    assert again is not None
    assert (again.job_id, again.attempt) == (job.job_id, 2)
    assert sent != ONE_TRIP
    check_journal(other)


def test_claims_that_it_does_not_fit_try_it_less_and_less(store: DisturbedStore) -> None:
    for number in range(20):
        register(store, exclusive=f"key {number}")
    sent = [trips(store, REQUESTS["pick"])[1] for _ in range(20)]
    assert sum("claim" in statements for statements in sent) < 6
    assert len(running(store)) == 20


@pytest.mark.parametrize("spoilt", ["record = left(record, -1)", "label = 'fresh', seal = seal + 1"])
def test_what_somebody_has_written_by_hand_is_looked_at(store: DisturbedStore, url: str, spoilt: str) -> None:
    job = register(store)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"UPDATE mam.job SET {spoilt}".encode())
    found, sent = trips(store, REQUESTS["pick"])
    assert sent != ONE_TRIP
    if "record" in spoilt:
        assert found is None
        assert [job.job_id in problem.file for problem in store.problems()] == [True]
    else:
        assert found is not None


def test_the_servers_clock_counts_and_not_the_guess(store: DisturbedStore, other: PostgresStore) -> None:
    job = register(store)
    assert store._ahead_ms is not None
    store._ahead_ms -= 3_600_000
    found, sent = trips(store, REQUESTS["pick"])
    assert sent != ONE_TRIP
    assert found is not None
    assert str(found.claimed_at) >= job.created_at
    assert other.get(job.job_id) == found


# -- once --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS)
def test_disturbed_at_any_moment_it_happens_once(
    store: DisturbedStore, other: PostgresStore, url: str, fault: str
) -> None:
    for moment in range(1, 7):
        if fault == "the answer is lost" and moment <= 3:
            continue  # it cannot be lost before it was given
        first, second = register(store), register(store)
        store.expect_fresh_jobs()
        once = Once(moment, lambda: FAULTS[fault](url, store))
        with disturbed(store, once):
            job = Registry(store).claim(REQUESTS["pick"])
        assert once.reached
        assert job is not None
        assert (job.job_id, job.attempt) == (first.job_id, 1)
        assert running(other) == [job]
        Registry(store).complete(job.job_id, attempt=1)
        Registry(other).cancel(second.job_id)
    check_journal(other)


@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_a_server_that_is_killed_and_restarted_meanwhile(server: PrivateServer, when: str) -> None:
    url = server.empty_database()
    create_postgres_store(url)
    store = DisturbedStore(url)
    first, _second = register(store), register(store)

    def die() -> None:
        crash_and_restart(server)
        if when == AFTER:
            lose_the_answer(store)

    left = [die]
    with disturbed(
        store, lambda statement, now: left.pop()() if left and (statement, now) == ("COMMIT", when) else None
    ):
        job = Registry(store).claim(REQUESTS["pick"])
    assert left == []
    assert job is not None
    assert job.job_id == first.job_id
    assert running(store) == [job]
    check_journal(store)
    store.close()


def test_one_that_was_taken_away_before_it_was_found_again_is_not_ours(
    store: DisturbedStore, other: PostgresStore
) -> None:
    """The answer is lost, and before anybody asks, the claim's lease is over and somebody else has the job."""
    first, second = register(store), register(store)

    def lose_and_take(statement: str, when: str) -> None:
        if (statement, when) == ("COMMIT", AFTER) and running(other):
            store.disturb = None
            Registry(other).release(first.job_id, attempt=1)
            assert Registry(other).pick(LABEL, owner="other") is not None
            lose_the_answer(store)

    store.disturb = lose_and_take
    job = Registry(store).claim(REQUESTS["pick"])
    assert job is not None
    assert (job.job_id, job.attempt) == (second.job_id, 1)
    assert other.get(first.job_id).owner == "other"
    check_journal(other)


def test_a_server_that_does_not_know_yet_is_told_before_it_is_asked(url: str) -> None:
    """Its process lives on, as behind a network that swallows packets, until it is ended."""
    lost = PostgresStore(url)
    process = lost._acting._wire.process if lost._acting._wire else 0
    asking = PostgresStore(url)
    asking._acting.end_conversation(process)
    with psycopg.connect(url) as connection:
        assert not connection.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (process,)).fetchall()
    asking._acting.end_conversation(process)
    lost.close()
    asking.close()


def test_a_younger_process_has_only_got_the_number(store: DisturbedStore, url: str) -> None:
    younger = DisturbedStore(url)
    process = younger.backend()
    assert process is not None
    store._acting.end_conversation(process)
    assert younger.get(register(younger).job_id) is not None
    assert younger.backend() == process
    younger.close()


SLOW = """
CREATE TABLE mam.slow (); INSERT INTO mam.slow DEFAULT VALUES;
CREATE FUNCTION mam.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.token IS NOT NULL AND EXISTS (SELECT FROM mam.slow) THEN PERFORM pg_advisory_xact_lock(42); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER wait BEFORE INSERT ON mam.journal FOR EACH ROW EXECUTE FUNCTION mam.wait()
"""
"""The next claim in one trip takes as long as somebody holds lock 42."""


@pytest.mark.parametrize("name", ["", "&application_name=other"])
@pytest.mark.parametrize("is_closed_before", [False, True])
def test_a_claim_that_the_server_is_still_at_is_ended_and_made_again(
    url: str, name: str, is_closed_before: bool
) -> None:
    """The answer is lost while the server works, also on a connection that this very claim has opened."""
    store = DisturbedStore(url + name)
    first, _second = register(store), register(store)
    if is_closed_before:
        store.hang_up()
    with psycopg.connect(url, autocommit=True) as holding:
        holding.execute(SLOW)
        holding.execute("SELECT pg_advisory_lock(42)")
        cutting = Thread(target=cut_once_it_waits, args=(url, store))
        cutting.start()
        job = Registry(store).claim(REQUESTS["pick"])
        cutting.join()
        holding.execute("SELECT pg_advisory_unlock(42)")
        waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        assert not holding.execute(waiting).fetchall()
    assert job is not None
    assert job.job_id == first.job_id
    assert running(store) == [job]
    check_journal(store)
    store.close()


def cut_once_it_waits(url: str, store: DisturbedStore) -> None:
    """As a network does it: the client hears that its connection is gone, and the server hears nothing."""
    with psycopg.connect(url, autocommit=True) as connection:
        while not connection.execute("SELECT FROM pg_stat_activity WHERE wait_event = 'advisory'").fetchall():
            pass
        connection.execute("DELETE FROM mam.slow")
    wire = store._acting._wire
    assert wire is not None
    with socket.socket(fileno=os.dup(wire._server.socket)) as cut:
        cut.shutdown(socket.SHUT_RD)


def test_one_that_was_spoilt_before_it_was_found_again_is_set_aside(store: DisturbedStore, url: str) -> None:
    first, second = register(store), register(store)

    def lose_and_spoil(statement: str, when: str) -> None:
        if (statement, when) == ("COMMIT", AFTER):
            store.disturb = None
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("UPDATE mam.job SET record = '{' WHERE job_id = %s", (first.job_id,))
            lose_the_answer(store)

    store.disturb = lose_and_spoil
    job = Registry(store).claim(REQUESTS["pick"])
    assert job is not None
    assert job.job_id == second.job_id
    assert [first.job_id in problem.file for problem in store.problems()] == [True]


def test_another_thread_that_expects_another_time_limit_changes_no_lease(
    store: DisturbedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seconds in (3600, 3600, 60, 60):
        register(store, timeout_sec=seconds)
    for _ in range(2):
        assert Registry(store).claim(REQUESTS["pick"]) is not None
    one = FreshClaims._one

    def interrupted(self: FreshClaims, timeout_sec: int) -> Any:
        monkeypatch.setattr(FreshClaims, "_one", one)
        row = self._one(timeout_sec)
        self.expect(60)
        return row

    monkeypatch.setattr(FreshClaims, "_one", interrupted)
    store._fresh._said = None
    for _ in range(2):
        job = Registry(store).claim(REQUESTS["pick"])
        assert job is not None
        assert job.lease is not None
        assert job.lease.seconds == job.timeout_sec == 60


@pytest.mark.parametrize("way", ["a refusal", "an act that is undone"])
def test_interrupted_on_the_way_to_where_the_server_listens_again(
    store: DisturbedStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Nobody knows then what the next answer would be to, so the connection is given up."""
    first, _second = register(store), register(store)

    def interrupted(_wire: Wire, _result: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    def act(_job: Job, _now: Moment) -> Change:
        raise Refused(why="no")

    ways: dict[str, Callable[[], object]] = {
        "a refusal": lambda: store._acting._trip([(Statement("bad", "SELECT 1 / 0"), [])], ends=True),
        "an act that is undone": lambda: store.change(first.job_id, act),
    }
    monkeypatch.setattr(Wire, "_to_sync_point", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ways[way]()
    assert store.backend() is None
    job = Registry(store).claim(REQUESTS["pick"])
    assert job is not None
    assert job.job_id == first.job_id
    assert running(other) == [job]
