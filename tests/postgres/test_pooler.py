"""Behind PgBouncer, in both modes of its pools, everything works as it does without."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import psycopg
import pytest

from mam.bus.relay_locks_postgres import AdvisoryLock
from mam.registry import Registry
from mam.stores.port import Query
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance import StoreConformance
from mam.testing.conformance.base import check_journal
from mam.testing.conformance.claims import Claims
from mam.testing.conformance.exclusive import Exclusive
from mam.testing.conformance.journal import Journals
from tests.cli.command import finish
from tests.postgres.crashes import AFTER, DisturbedStore
from tests.postgres.pooler import Pooler
from tests.sample_jobs import READERS, WRITERS, SampleJobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.stores.port import Store
    from mam.util.clock import Clock
    from tests.cli.command import Mam
    from tests.postgres.server import PrivateServer

pytestmark = pytest.mark.external

MODES = ("session", "transaction")


@pytest.fixture(scope="module")
def pooler(server: PrivateServer) -> Iterator[Pooler]:
    pooler = Pooler(server.folder / "pooler", server)
    yield pooler
    pooler.stop()


@pytest.fixture(params=MODES)
def pooled(request: pytest.FixtureRequest, pooler: Pooler, server: PrivateServer) -> str:
    server.empty_database()
    return pooler.url(request.param)


@pytest.fixture
def by_transaction(pooler: Pooler, server: PrivateServer) -> str:
    server.empty_database()
    return pooler.url("transaction")


class TestConforms(Claims, Exclusive, Journals):
    """The parts of the suite that depend on locks, transactions and notifications."""

    shared_by_processes = StoreConformance.shared_by_processes
    has_boot_clock = False

    @pytest.fixture
    def location(self, by_transaction: str) -> str:
        return by_transaction

    @staticmethod
    def open_store(location: str, clock: Clock | None = None) -> Store:
        create_postgres_store(location)
        return PostgresStore(location, clock)


def test_every_verb_of_the_registry_works(pooled: str) -> None:
    create_postgres_store(pooled)
    store = PostgresStore(pooled)
    for name, verb in {**WRITERS, **READERS}.items():
        registry = Registry(store)
        verb(registry, SampleJobs(registry, name))
    check_journal(store)
    store.close()


def test_commands_and_a_worker_work(mam: Mam, pooled: str) -> None:
    mam.env["MAM_STORE"] = pooled
    assert mam("init").code == 0
    job = mam("register", "echo hello", "--agent", "shell").line
    assert mam("worker", "-s", "shell", "--drain").code == 0
    assert mam("wait", job).code == 0
    assert mam("agents", "list").code == 0


def test_a_subscriber_of_the_store_reads_every_event(mam: Mam, pooled: str) -> None:
    mam.env["MAM_STORE"] = pooled
    mam("init")
    job = mam.register()
    subscriber = mam.start("subscribe", job, "--json", "--timeout", "0", "--idle-timeout", "0")
    mam("publish", job, "started")
    mam("publish", job, "progress", "--detail", "half")
    mam("complete", job)
    ran = finish(subscriber)
    assert [json.loads(line)["event"] for line in ran.out.splitlines()] == ["started", "progress", "completed"]


def test_a_pooler_that_drops_the_settings_is_noticed(server: PrivateServer) -> None:
    server.empty_database()
    pooler = Pooler(server.folder / "ignoring", server, "ignore_startup_parameters = options")
    url = pooler.url("transaction")
    create_postgres_store(url)
    store = PostgresStore(url)
    assert (store.probe().is_pooled, store.probe().hears) == (True, False)
    store.close()
    with psycopg.connect(server.url()) as connection:
        schemas = "SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'journal'"
        assert connection.execute(schemas).fetchall() == [("mam",)]
    pooler.stop()


@pytest.mark.parametrize(("mode", "hears"), [("session", True), ("transaction", False)])
def test_a_waiting_process_learns_of_a_change(pooler: Pooler, server: PrivateServer, mode: str, hears: bool) -> None:
    create_postgres_store(server.empty_database())
    waiting, other = PostgresStore(pooler.url(mode)), PostgresStore(server.url())
    offset = waiting.end_offset()
    assert waiting.wait(offset, 0), "the first call says that one must look once more"
    assert not waiting.wait(offset, 0.01)
    Registry(other).register(prompt="p", agent="codex")
    assert waiting.wait(offset, 60)
    assert waiting._client.listener.hears() is hears
    waiting.close()
    other.close()


def test_one_relay_at_a_time(pooled: str) -> None:
    create_postgres_store(pooled)
    one, two = PostgresStore(pooled), PostgresStore(pooled)
    first, second = AdvisoryLock(one, "relay"), AdvisoryLock(two, "relay")
    assert first.take()
    assert not second.take()
    first.release()
    assert second.take(60)
    second.release()
    one.close()
    two.close()


def test_a_lost_answer_is_found_behind_a_pooler(by_transaction: str, server: PrivateServer) -> None:
    """The pooler gives the server process to others: the one of the lost transaction is known by when it began."""
    create_postgres_store(by_transaction)
    store = DisturbedStore(by_transaction)
    registry = Registry(store)
    cuts: list[str] = []

    def cut(statement: str, when: str) -> None:
        if when == AFTER and (statement.startswith("WITH written") or statement == "COMMIT") and len(cuts) < 2:
            cuts.append(statement)
            store._client._connection.pgconn.finish()  # type: ignore[union-attr]
            raise psycopg.OperationalError("cut")

    store.disturb = cut
    registry.register(prompt="p", agent="codex", job_id="one")
    store.disturb = None
    assert len(cuts) == 2
    assert [job.job_id for job in store.select(Query())] == ["one"]
    check_journal(store)
    store.close()


@pytest.mark.parametrize(
    ("mode", "said"),
    [("session", "notifications get through"), ("transaction", "lets no notifications (LISTEN) through")],
)
def test_doctor_reports_the_pooler(mam: Mam, pooler: Pooler, server: PrivateServer, mode: str, said: str) -> None:
    create_postgres_store(server.empty_database())
    assert said in mam("doctor", "--store", pooler.url(mode)).out


def test_a_store_in_another_schema_is_named(mam: Mam, database: str) -> None:
    """An earlier mam behind a pooler made its tables in `public`."""
    create_postgres_store(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ALTER SCHEMA mam RENAME TO elsewhere")
        try:
            for command in (("init",), ("list",), ("register", "p", "--agent", "a")):
                mam(*command, "--store", database).failed(9, 'its schema "elsewhere"', "ALTER SCHEMA", "RENAME TO mam")
            connection.execute("ALTER SCHEMA elsewhere RENAME TO mam")
            assert mam("register", "p", "--agent", "a", "--store", database).code == 0
            connection.execute("CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.store AS TABLE mam.store")
            connection.execute("CREATE TABLE elsewhere.job AS TABLE mam.job")
            connection.execute("CREATE TABLE elsewhere.journal AS TABLE mam.journal")
            assert "another store of mam in its schema elsewhere" in mam("doctor", "--store", database).out
        finally:
            connection.execute("DROP SCHEMA IF EXISTS elsewhere CASCADE")
