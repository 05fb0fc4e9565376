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
from mam.jobs.ending import End
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.port import Query
from mam.stores.postgres import limits
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import check_journal, history_lines, pick_id, register_and_claim, register_jobs
from mam.testing.races import RacePool
from mam.testing.tasks import LABEL, claim_all, wait_for_entries
from tests.faults.amount import DOSE
from tests.faults.answer_races import race_answers
from tests.postgres.crashes import AFTER, BEFORE, DisturbedStore, disturbed, wait_for_a_lock
from tests.postgres.proxy import Proxy
from tests.postgres.server import PrivateServer
from tests.sample_jobs import WRITERS, SampleJobs

WRITERS_AT_ONCE, EACH_WRITES = 6, 40

# -- the journal ---------------------------------------------------------------------------------------------------


def test_a_follower_does_not_read_past_a_writer_that_has_not_committed(
    store: DisturbedStore, other: PostgresStore, url: str
) -> None:
    """The second writer has a higher number and commits first."""
    follower = PostgresStore(url)
    register_jobs(Registry(other), job_id="before")
    offset = follower.end_offset()

    def meanwhile(statement: str, when: str) -> None:
        if (statement, when) == ("COMMIT", BEFORE):
            register_jobs(Registry(other), job_id="quick")
            assert other.get("quick").status is Status.PENDING
            assert follower.end_offset() == offset
            assert list(follower.entries(offset)) == []

    with disturbed(store, meanwhile):
        register_jobs(Registry(store), job_id="slow", key="in a transaction")
    told = list(follower.entries(offset))
    assert [entry.job_id for entry in told] == ["slow", "quick"]
    assert [entry.number for entry in told] == sorted(entry.number for entry in told)
    follower.close()


def test_many_writers_hide_no_entry_from_a_follower(url: str) -> None:
    """The follower reads on from the last entry that it saw; one that came later with a lower number would be lost."""
    judge, stores = PostgresStore(url), [PostgresStore(url) for _ in range(WRITERS_AT_ONCE)]
    writing = [threading.Thread(target=_write_much, args=(one, rank)) for rank, one in enumerate(stores)]
    seen: list[int] = []
    for thread in writing:
        thread.start()
    offset: str | None = None
    while any(thread.is_alive() for thread in writing) or offset != judge.end_offset():
        for entry in judge.entries(offset):
            seen.append(entry.number)
            offset = entry.offset
    with psycopg.connect(url) as connection:
        assert seen == [number for (number,) in connection.execute("SELECT number FROM mam.journal ORDER BY number")]
    assert len(seen) == WRITERS_AT_ONCE * (EACH_WRITES * 3 + EACH_WRITES)
    for one in (judge, *stores):
        one.close()


def _write_much(store: PostgresStore, rank: int) -> None:
    """Single statements, and transactions with more than one entry."""
    registry = Registry(store)
    for _ in range(EACH_WRITES):
        registry.register(prompt="p", agent="codex", label=f"label {rank}")
        job = registry.pick(f"label {rank}", owner="me")
        assert job is not None
        registry.register(prompt="p", agent="codex", label="other", key=f"{rank} {job.job_id}")
        registry.complete(job.job_id, attempt=1)


@pytest.mark.parametrize("where", ["the same database", "another database"])
def test_an_open_transaction_of_another_client_delays_no_follower(
    store: DisturbedStore, other: PostgresStore, url: str, where: str
) -> None:
    with psycopg.connect(url if where == "the same database" else url.replace("/postgres?", "/template1?")) as client:
        client.execute("SELECT pg_current_xact_id()")
        offset = other.end_offset()
        other.wait(offset, 0.01)
        (job,) = register_jobs(Registry(store))
        assert [entry.job_id for entry in other.entries(offset)] == [job]
        assert other.wait(offset, 60.0)
        assert other.end_offset() != offset


def test_a_commit_that_comes_to_nothing_leaves_no_gap_that_anyone_waits_for(
    store: DisturbedStore, other: PostgresStore
) -> None:
    register_jobs(Registry(store), job_id="first")
    with pytest.raises(AlreadyRegistered):
        register_jobs(Registry(store), job_id="first")
    register_jobs(Registry(store), job_id="second")
    assert [entry.job_id for entry in other.entries(None)] == ["first", "second"]


def test_a_job_registered_while_a_claim_settles_others_is_registered_before_it_is_claimed(
    store: DisturbedStore, other: PostgresStore
) -> None:
    """The claim's transaction began to write first, so its number is lower than that of the registration it sees."""
    lost = register_and_claim(Registry(other), label="somebody else")
    Registry(other).heartbeat(lost.job_id, attempt=1, lease_seconds=0)
    left = ["newer", "new"]

    def meanwhile(statement: str, when: str) -> None:
        if "priority DESC" in statement and when == BEFORE and left:
            register_jobs(Registry(other), job_id=left.pop())

    with disturbed(store, meanwhile):
        assert Registry(store).pick(LABEL, owner="me") is not None
    assert left == []
    assert [line["event"] for line in history_lines(other, "new")] == ["registered", "status_changed"]
    assert Registry(store).pick(LABEL, owner="me") is not None
    assert [line["event"] for line in history_lines(other, "newer")] == ["registered", "status_changed"]
    check_journal(other)


# -- the same thing twice ----------------------------------------------------------------------------------------


def race_after_the_look(store: DisturbedStore, rival: Callable[[], object]) -> None:
    """The rival is quicker: it commits after the store has looked and before it writes."""
    left = [rival]

    def meanwhile(statement: str, when: str) -> None:
        if "INSERT INTO mam.job (" in statement and when == BEFORE and left:
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


def test_a_claim_skips_locked_jobs_without_waiting(store: DisturbedStore, url: str) -> None:
    first, second = register_jobs(Registry(store), 2)
    with psycopg.connect(url) as holder:
        holder.execute("SELECT FROM mam.job WHERE job_id = %s FOR UPDATE", (first,))
        mine = Registry(store).pick(LABEL, owner="me")
    assert mine is not None
    assert mine.job_id == second


def test_an_act_that_others_outrun_again_and_again_locks_the_row(store: DisturbedStore, other: PostgresStore) -> None:
    job = register_and_claim(Registry(other))
    outrun: list[str] = []

    def meanwhile(statement: str, when: str) -> None:
        if "SET version = version + 1" in statement and "version = %(version)s" in statement and when == BEFORE:
            outrun.append(statement)
            if len(outrun) <= 3:
                Registry(other).heartbeat(job.job_id, attempt=1)

    with disturbed(store, meanwhile):
        assert Registry(store).next_seq(job.job_id) == 1
    assert len(outrun) == 4, "three that missed, and one under a lock"
    check_journal(other)


def test_a_dependent_registered_during_the_end_of_a_job_sees_it(
    store: DisturbedStore, other: PostgresStore, url: str
) -> None:
    """The end is one statement, sent before the mark of the registration is committed; it waits, and sees it."""
    job = register_and_claim(Registry(other))
    ending = threading.Thread(
        target=lambda: other.end_job(job.job_id, End(status=Status.COMPLETED, attempt=1, claim_id=job.claim_id))
    )

    def meanwhile(statement: str, when: str) -> None:
        if "SET awaited = true" in statement and when == AFTER and not ending.ident:
            ending.start()
            wait_for_a_lock(url)

    with disturbed(store, meanwhile):
        (after,) = register_jobs(Registry(store), after=[job.job_id])
    ending.join()
    assert other.get(after).status is Status.WAITING
    assert [settled.job_id for settled in other.sweep()] == [after]
    assert other.get(after).status is Status.PENDING
    check_journal(other)


# -- news ------------------------------------------------------------------------------------------------------------


def test_every_entry_notifies_and_an_empty_claim_does_not(store: DisturbedStore, url: str) -> None:
    with listening(url) as ear:
        register_jobs(Registry(store))
        assert heard(ear, url) == 1
        assert Registry(store).pick(LABEL, owner="me") is not None
        assert heard(ear, url) == 1
        assert Registry(store).pick(LABEL, owner="me") is None
        assert heard(ear, url) == 0


@contextmanager
def listening(url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """As a store does that waits."""
    with psycopg.connect(url, autocommit=True) as ear:
        ear.execute("LISTEN mam_news")
        ear.execute("SELECT pg_advisory_lock_shared(7168365, 2)")
        yield ear


def wait_for_idle_listener(url: str) -> None:
    """Until a store has said to the server that it listens, and waits."""
    asked = (
        "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND classid = 7168365"
        " AND objid = 2 AND state = 'idle' AND application_name = 'mam' AND query LIKE '%newest_entry%'"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        while not connection.execute(asked.encode()).fetchall():
            pass


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
    register_jobs(registry, job_id="before")
    backend = store.backend()
    assert in_a_child(lambda: register_jobs(registry, job_id="child") == ["child"] and store.backend() != backend) == 0
    assert store.backend() == backend
    register_jobs(registry, job_id="after")
    assert [job.job_id for job in store.select(Query())] == ["after", "child", "before"]
    check_journal(store)


def test_a_wait_works_in_a_forked_child(store: DisturbedStore) -> None:
    offset = store.end_offset()
    store.wait(offset, 0.01)
    assert in_a_child(lambda: store.wait(offset, 0.01) in (True, False)) == 0


def test_threads_share_one_store(store: DisturbedStore) -> None:
    jobs = register_jobs(Registry(store), 60)
    with RacePool(lambda: store, processes=False) as pool:
        got = pool.race([claim_all] * 8)
    assert sorted(claim for some in got for claim in some) == sorted((job_id, 1) for job_id in jobs)
    check_journal(store)


def test_a_thread_that_waits_does_not_keep_others_from_working(store: DisturbedStore) -> None:
    with RacePool(lambda: store, processes=False) as pool:
        sleeper = pool.start(partial(wait_for_entries, rounds=5))
        for _ in range(5):
            sleeper.report()
            register_jobs(Registry(store))
        assert sleeper.result() == 5


def test_two_threads_that_wait_are_both_woken(store: DisturbedStore, other: PostgresStore) -> None:
    store.wait(store.end_offset(), 0.01)
    offset, woken = store.end_offset(), list[bool]()
    threads = [threading.Thread(target=lambda: woken.append(store.wait(offset, 2.0))) for _ in range(2)]
    for thread in threads:
        thread.start()
    register_jobs(Registry(other))
    for thread in threads:
        thread.join()
    assert woken == [True, True]


def test_closing_a_store_wakes_the_thread_that_waits(store: DisturbedStore, url: str) -> None:
    waiter, woken = PostgresStore(url), list[bool | Exception]()
    offset = waiter.end_offset()

    def wait() -> None:
        try:
            waiter.wait(offset, 0.01)
            woken.append(waiter.wait(offset, 60.0))
        except Exception as error:
            woken.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_for_idle_listener(url)
    waiter.close()
    thread.join(30)
    assert woken == [True]


# -- a wire that is cut ------------------------------------------------------------------------------------------------


@pytest.fixture
def wire(server: PrivateServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Proxy, str]]:
    """A proxy in front of the private server, and the address that leads through it."""
    monkeypatch.setattr(limits, "PAUSE_SECONDS", 0.001)
    url = server.empty_database()
    create_postgres_store(url)
    before, _, folder = url.rpartition("host=")
    with TemporaryDirectory(prefix="mam-px-") as here:
        proxy = Proxy(Path(here), Path(folder))
        yield proxy, f"{before}host={here}"
        proxy.close()


@pytest.mark.parametrize(
    ("verb", "answer"),
    [(verb, 1) for verb in ("register", "pick", "publish", "complete", "next_seq", "release")]
    + [(verb, 2) for verb in ("register", "publish", "next_seq", "release")],
)
def test_a_connection_cut_before_the_answer(
    wire: tuple[Proxy, str], server: PrivateServer, verb: str, answer: int
) -> None:
    proxy, address = wire
    store, judge = PostgresStore(address), PostgresStore(server.url())
    registry = Registry(store)
    undisturbed = SampleJobs(registry, "undisturbed")
    WRITERS[verb](registry, undisturbed)
    expected = undisturbed.history(judge)
    cut = SampleJobs(registry, "cut")
    proxy.cut_at(answer)
    WRITERS[verb](registry, cut)
    assert proxy.cuts == 1
    assert cut.history(judge) == expected
    check_journal(judge)
    for each in (store, judge):
        each.close()


def test_a_claim_whose_wire_was_cut_before_it_committed_is_made_once(
    wire: tuple[Proxy, str], server: PrivateServer
) -> None:
    """Else its server process would commit it later, and a second job would be claimed for the same worker."""
    proxy, address = wire
    store, judge = PostgresStore(address), PostgresStore(server.url())
    jobs = register_jobs(Registry(judge), 2)
    claims: list[str | None] = []
    worker = threading.Thread(target=lambda: claims.append(pick_id(Registry(store))))
    with psycopg.connect(server.url()) as holder:
        holder.execute("LOCK TABLE mam.journal IN SHARE MODE")
        worker.start()
        wait_for_a_lock(server.url())
        (first,) = locked_backends(server.url())
        proxy.cut()
        while locked_backends(server.url()) in ([], [first]):
            pass  # until another process of the server does it again
        assert first not in locked_backends(server.url()), "the first one would go on when the lock is free"
    worker.join()
    assert claims == [jobs[0]]
    assert [judge.get(job_id).attempt for job_id in jobs] == [1, 0]
    check_journal(judge)
    store.close()
    judge.close()


def locked_backends(url: str) -> list[int]:
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'mam' AND wait_event_type = 'Lock'"
    with psycopg.connect(url, autocommit=True) as connection:
        return [int(pid) for (pid,) in connection.execute(query).fetchall()]


def test_the_seam_sees_every_statement_of_a_verb(store: DisturbedStore) -> None:
    """The tests of this directory stand on it."""
    seen: list[str] = []
    with disturbed(store, lambda statement, when: seen.append(statement) if when == AFTER else None):
        register_jobs(Registry(store))
        register_jobs(Registry(store), key="in a transaction")
    assert sum("INSERT INTO mam.journal" in statement for statement in seen) == 2
    assert "COMMIT" in seen


def test_of_two_answerers_one_wins(store: DisturbedStore, url: str, tmp_path: Path) -> None:
    """Two processes; `make faults` has 1,000 races on each local store."""
    race_answers(Registry(store), partial(PostgresStore, url), tmp_path, 1000 if DOSE > 1 else 50)
