"""Many at once on one server: late commits, the same key and id, news, forks, threads and a wire that is cut."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from mam.errors import AlreadyRegistered
from mam.registry import Registry
from mam.stores.port import Query
from mam.stores.postgres import acting as postgres
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import check_journal, claimed, lines_of, registered
from mam.testing.races import Crew
from mam.testing.tasks import LABEL, claim_all, wait_for_news
from tests.postgres.crashes import AFTER, BEFORE, DisturbedStore, disturbed, wait_for_a_lock
from tests.postgres.proxy import Proxy
from tests.postgres.server import PrivateServer
from tests.stories import WRITERS, Cast

# -- the journal ---------------------------------------------------------------------------------------------------


def test_a_follower_does_not_miss_what_was_numbered_first_and_committed_last(
    store: DisturbedStore, other: PostgresStore, url: str
) -> None:
    """The slow one has the lower number; whoever reads past it before it commits would never see it."""
    follower = PostgresStore(url)
    read: list[str] = []
    cursor = follower.end()

    def follow(through: PostgresStore) -> None:
        nonlocal cursor
        for entry in through.entries(cursor):
            cursor = entry.cursor
            read.append(entry.job_id)

    def meanwhile(statement: str, when: str) -> None:
        if (statement, when) == ("COMMIT", BEFORE):
            for job_id in ("quick-1", "quick-2"):
                registered(Registry(other), job_id=job_id)
                follow(follower)

    with disturbed(store, meanwhile):
        registered(Registry(store), job_id="slow")
    follow(other)
    assert sorted(read) == ["quick-1", "quick-2", "slow"]
    assert [entry.job_id for entry in other.entries(None)] == read
    assert [job.job_id for job in follower.select(Query())] == ["quick-2", "quick-1", "slow"]
    follower.close()


def test_who_begins_to_follow_during_a_slow_commit_sees_it(
    store: DisturbedStore, other: PostgresStore, url: str
) -> None:
    follower = PostgresStore(url)
    cursors: list[str] = []

    def meanwhile(statement: str, when: str) -> None:
        if (statement, when) == ("COMMIT", BEFORE):
            registered(Registry(other), job_id="quick")
            cursors.append(follower.end())

    with disturbed(store, meanwhile):
        registered(Registry(store), job_id="slow")
    assert "slow" in [entry.job_id for entry in other.entries(cursors[0])]
    follower.close()


def test_a_commit_that_comes_to_nothing_leaves_no_gap_that_anyone_waits_for(
    store: DisturbedStore, other: PostgresStore
) -> None:
    registered(Registry(store), job_id="first")
    with pytest.raises(AlreadyRegistered):
        registered(Registry(store), job_id="first")
    registered(Registry(store), job_id="second")
    assert [entry.job_id for entry in other.entries(None)] == ["first", "second"]


def test_the_journal_keeps_its_order_when_transaction_numbers_grow_by_a_digit(
    store: DisturbedStore, other: PostgresStore, url: str
) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        now = int(str(connection.execute("SELECT pg_current_xact_id()").fetchall()[0][0]))
        left = 10 ** len(str(now)) - now - 10
        take = f"FOR turn IN 1..{left} LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP"
        connection.execute(f"DO $$ BEGIN {take}; END $$".encode())
    jobs = registered(Registry(store), 30)
    assert [entry.job_id for entry in other.entries(None)] == jobs
    check_journal(other)


def test_a_job_registered_while_a_claim_settles_others_is_registered_before_it_is_claimed(
    store: DisturbedStore, other: PostgresStore
) -> None:
    """The claim's transaction began to write first, so its number is lower than that of the registration it sees."""
    lost = claimed(Registry(other), label="somebody else")
    Registry(other).heartbeat(lost.job_id, attempt=1, lease_seconds=0)
    left = ["newer", "new"]

    def meanwhile(statement: str, when: str) -> None:
        if "priority DESC" in statement and when == BEFORE and left:
            registered(Registry(other), job_id=left.pop())

    with disturbed(store, meanwhile):
        assert Registry(store).pick(LABEL, owner="me") is not None
    assert left == []
    assert [line["event"] for line in lines_of(other, "new")] == ["registered", "status_changed"]
    assert Registry(store).pick(LABEL, owner="me") is not None
    assert [line["event"] for line in lines_of(other, "newer")] == ["registered", "status_changed"]
    check_journal(other)


# -- the same thing twice ----------------------------------------------------------------------------------------


def race_after_the_look(store: DisturbedStore, rival: Callable[[], object]) -> None:
    """The rival is quicker: it commits after the store has looked and before it writes."""
    left = [rival]

    def meanwhile(statement: str, when: str) -> None:
        if "INSERT INTO job (" in statement and when == BEFORE and left:
            left.pop()()

    store.disturb = meanwhile


def test_a_key_that_another_took_in_between_gives_the_others_job(store: DisturbedStore, other: PostgresStore) -> None:
    rival = partial(Registry(other).register, prompt="theirs", agent="codex", key="nightly", job_id="theirs")
    race_after_the_look(store, rival)
    registration = Registry(store).register(prompt="mine", agent="codex", key="nightly")
    assert (registration.created, registration.job.job_id) == (False, "theirs")
    check_journal(other)


def test_an_id_that_another_took_in_between_is_refused(store: DisturbedStore, other: PostgresStore) -> None:
    race_after_the_look(store, partial(Registry(other).register, prompt="theirs", agent="codex", job_id="same"))
    with pytest.raises(AlreadyRegistered):
        Registry(store).register(prompt="mine", agent="codex", job_id="same")
    assert other.get("same").prompt == "theirs"
    check_journal(other)


def test_one_retry_in_between_is_the_only_one(store: DisturbedStore, other: PostgresStore) -> None:
    old = claimed(Registry(other))
    Registry(other).fail(old.job_id, attempt=1, reason="broken")
    race_after_the_look(store, partial(Registry(other).retry, old.job_id))
    mine = Registry(store).retry(old.job_id)
    assert not mine.created
    assert Registry(other).retry(old.job_id).job.job_id == mine.job.job_id
    check_journal(other)


def test_a_claim_skips_what_another_has_in_its_hands_and_waits_for_nobody(
    store: DisturbedStore, other: PostgresStore
) -> None:
    first, second = registered(Registry(other), 2)
    taken: list[str | None] = []

    def meanwhile(statement: str, when: str) -> None:
        if (statement, when) == ("COMMIT", BEFORE):
            job = Registry(other).pick(LABEL, owner="other")
            taken.append(None if job is None else job.job_id)

    with disturbed(store, meanwhile):
        mine = Registry(store).pick(LABEL, owner="me")
    assert mine is not None
    assert (mine.job_id, taken) == (first, [second])


# -- news ------------------------------------------------------------------------------------------------------------


NEWS = {"register": 1, "register with a key": 1, "pick": 1, "sweep": 1, "release": 1, "complete": 1, "fail": 1,
        "complete a pending job": 1, "cancel": 1, "heartbeat": 0, "publish": 0, "next_seq": 0,
        "fail retryably": 0, "announce": 1, "pick in a new session": 2, "cancel a running job": 1, "retry": 1,
        "set a status": 0, "register after another": 0}  # fmt: skip
"""How often each verb rings. `pick` and `sweep` do so for the lost job that they make claimable again, a new
session for the job that it takes from the last one."""


@pytest.mark.parametrize("verb", WRITERS)
def test_news_is_sent_only_when_a_job_becomes_claimable_or_ends(store: DisturbedStore, url: str, verb: str) -> None:
    registry = Registry(store)
    cast = Cast(registry, "run")
    with listening(url) as ear:
        WRITERS[verb](registry, cast)
        assert heard(ear, url) == NEWS[verb]


def test_a_job_that_a_registration_hid_from_claims_is_news_again(store: DisturbedStore, url: str) -> None:
    """The first that comes after it writes its row, which claims pass over meanwhile; later ones only hold it."""
    (first,) = registered(Registry(store))
    with listening(url) as ear:
        registered(Registry(store), after=[first])
        assert heard(ear, url) == 1
        registered(Registry(store), after=[first])
        assert heard(ear, url) == 0


def test_a_claim_that_takes_or_finds_nothing_new_is_silent(store: DisturbedStore, url: str) -> None:
    registered(Registry(store))
    with listening(url) as ear:
        assert Registry(store).pick(LABEL, owner="me") is not None
        assert Registry(store).pick(LABEL, owner="me") is None
        assert heard(ear, url) == 0


@contextmanager
def listening(url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """As a store does that waits."""
    with psycopg.connect(url, autocommit=True) as ear:
        ear.execute(postgres.STATEMENTS["listen"].text.encode())
        ear.execute("LISTEN mam_news")
        yield ear


def test_nobody_is_told_when_nobody_listens(store: DisturbedStore, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as ear:
        ear.execute("LISTEN mam_news")  # without a word to the others
        registered(Registry(store))
        assert heard(ear, url) == 0


def test_who_begins_to_listen_waits_for_those_who_did_not_see_it(other: PostgresStore, url: str) -> None:
    """A writer that has looked for listeners and found none rings for nobody, so its end has to be seen."""
    cursor, woken = other.end(), list[bool]()
    begun = threading.Thread(target=lambda: woken.append(other.wait(cursor, 60.0)))
    with psycopg.connect(url) as writer:
        writer.execute("SELECT pg_advisory_xact_lock_shared(7168365, 2)")
        begun.start()
        wait_for_a_lock(url)
        assert woken == []
    begun.join(60)
    assert woken == [True], "it looks once more"


def heard(ear: psycopg.Connection[tuple[object, ...]], url: str) -> int:
    """How often it rang before the test's own ring, which comes after all others."""
    with psycopg.connect(url, autocommit=True) as bell:
        bell.execute("SELECT pg_notify('mam_news', 'end of the test')")
    for rings, news in enumerate(ear.notifies(timeout=60)):
        if news.payload == "end of the test":
            return rings
    raise AssertionError("the test's own news did not come")


# -- forks and threads -----------------------------------------------------------------------------------------------


def in_a_child(do: Callable[[], bool]) -> int:
    """The exit code of a forked child: 0 when `do` says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the test runner has threads; the child uses none of them
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if do() else 1)
        except BaseException:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_store_opened_before_a_fork_works_in_both(store: DisturbedStore) -> None:
    registry = Registry(store)
    registered(registry, job_id="before")
    backend = store.backend()
    assert in_a_child(lambda: registered(registry, job_id="child") == ["child"] and store.backend() != backend) == 0
    assert store.backend() == backend
    registered(registry, job_id="after")
    assert [job.job_id for job in store.select(Query())] == ["after", "child", "before"]
    check_journal(store)


def test_who_has_waited_before_a_fork_can_wait_in_the_child(store: DisturbedStore) -> None:
    cursor = store.end()
    store.wait(cursor, 0.01)
    assert in_a_child(lambda: store.wait(cursor, 0.01) in (True, False)) == 0


def test_threads_share_one_store(store: DisturbedStore) -> None:
    jobs = registered(Registry(store), 60)
    with Crew(lambda: store, processes=False) as crew:
        got = crew.race([claim_all] * 8)
    assert sorted(claim for some in got for claim in some) == sorted((job_id, 1) for job_id in jobs)
    check_journal(store)


def test_a_thread_that_waits_does_not_keep_others_from_working(store: DisturbedStore) -> None:
    with Crew(lambda: store, processes=False) as crew:
        sleeper = crew.start(partial(wait_for_news, rounds=5))
        for _ in range(5):
            sleeper.report()
            registered(Registry(store))
        assert sleeper.result() == 5


def test_two_threads_that_wait_are_both_woken(store: DisturbedStore, other: PostgresStore) -> None:
    store.wait(store.end(), 0.01)
    cursor, woken = store.end(), list[bool]()
    threads = [threading.Thread(target=lambda: woken.append(store.wait(cursor, 2.0))) for _ in range(2)]
    for thread in threads:
        thread.start()
    registered(Registry(other))
    for thread in threads:
        thread.join()
    assert woken == [True, True]


# -- a wire that is cut ------------------------------------------------------------------------------------------------


@pytest.fixture
def wire(server: PrivateServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Proxy, str]]:
    """A proxy in front of the private server, and the address that leads through it."""
    monkeypatch.setattr(postgres, "_PAUSE", 0.001)
    url = server.empty_database()
    create_postgres_store(url)
    before, _, folder = url.rpartition("host=")
    with TemporaryDirectory(prefix="mam-px-") as here:
        proxy = Proxy(Path(here), Path(folder))
        yield proxy, f"{before}host={here}"
        proxy.close()


@pytest.mark.parametrize("answer", [1, 2])
@pytest.mark.parametrize("verb", ["register", "pick", "publish", "complete", "next_seq", "release"])
def test_a_wire_cut_before_the_answer_is_heard(
    wire: tuple[Proxy, str], server: PrivateServer, verb: str, answer: int
) -> None:
    proxy, address = wire
    store, judge = PostgresStore(address), PostgresStore(server.url())
    registry = Registry(store)
    undisturbed = Cast(registry, "undisturbed")
    WRITERS[verb](registry, undisturbed)
    expected = undisturbed.story(judge)
    cut = Cast(registry, "cut")
    # Who wrote the job itself hears one answer when it ends it, any other hears two.
    stranger = PostgresStore(address)
    proxy.cut_at(answer)
    WRITERS[verb](registry if answer == 1 else Registry(stranger), cut)
    assert proxy.cuts == 1
    assert cut.story(judge) == expected
    check_journal(judge)
    for each in (store, stranger, judge):
        each.close()


def test_the_seam_sees_every_statement_of_a_verb(store: DisturbedStore) -> None:
    """The tests of this directory stand on it."""
    seen: list[str] = []
    with disturbed(store, lambda statement, when: seen.append(statement) if when == AFTER else None):
        registered(Registry(store))
    assert (seen[0], seen[-1]) == ("BEGIN", "COMMIT")
    assert any("INSERT INTO journal" in statement for statement in seen)
