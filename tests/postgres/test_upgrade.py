"""A store of mam 0.1.0 (schema 14) is upgraded by `mam init`, with everything that is in it.

The tag's own code wrote `version_14.sql`, and `version_14.json` is what it then read from it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mam.errors import GenerationLost, StoreUnavailable
from mam.jobs.record import parse_job
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.port import Query
from mam.stores.postgres.schema import VERSION
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import register_jobs
from tests.cli.command import Mam

HERE = Path(__file__).parent
WAS: dict[str, Any] = json.loads((HERE / "version_14.json").read_text(encoding="utf-8"))


def now(fields: dict[str, Any]) -> dict[str, Any]:
    """The record with the fields that mam has added since."""
    return parse_job(fields, "").to_json()


@pytest.fixture
def old(database: str) -> str:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute((HERE / "version_14.sql").read_bytes())
    return database


def test_it_is_refused_until_the_user_asks_for_the_upgrade(mam: Mam, old: str) -> None:
    said = f"schema 14 of {VERSION}"
    mam("list", "--store", old).failed(9, said, "mam init")
    mam("register", "p", "--agent", "a", "--store", old).failed(9, said)


def test_everything_is_there_afterwards(mam: Mam, old: str) -> None:
    assert mam("init", "--store", old).code == 0
    store = PostgresStore(old)
    jobs = {job.job_id: job.to_json() for job in store.select(Query())}
    assert list(jobs.values()) == [now(fields) for fields in WAS["jobs"]]
    assert {job_id: store.events(job_id) for job_id in jobs} == WAS["events"]
    archive: list[Any] = [[kept.job.to_json(), kept.events] for kept in store.archive_contents()]
    assert archive == [[now(fields), events] for fields, events in WAS["archive"]]
    assert [pause.as_dict() for pause in store.pauses()] == WAS["pauses"]
    known = {agent: [found.current, list(found.superseded)] for agent, found in store.generations().items()}
    assert known == WAS["generations"]
    assert store.secrets("running0") == WAS["secrets"]
    assert [[entry.job_id, entry.fields, list(entry.lines)] for entry in store.entries(None)] == WAS["journal"]
    assert store.position("relay mqtt://b") is None, "a position in the old journal means nothing in the new one"
    store.close()
    assert not create_postgres_store(old), "once is enough"


def test_work_continues_after_an_upgrade(mam: Mam, old: str) -> None:
    assert mam("init", "--store", old).code == 0
    store = PostgresStore(old)
    registry = Registry(store)
    highest = max(fields["number"] for fields in WAS["jobs"])
    assert registry.heartbeat("running0", attempt=1).lease is not None
    for first, newest in WAS["retries"].items():
        found = store.newest(first)
        assert found is not None
        assert found.job_id == newest
    assert not registry.register(prompt="again", agent="shell", key="nightly").created
    assert not registry.register(prompt="again", agent="shell", key="old 1").created, "an archived job has the key"
    (new,) = register_jobs(registry, label="v14", after=["failed00", "running0"])
    assert store.get(new).number == highest + 1
    settled = {job.job_id for job in registry.sweep()}
    assert settled == {"dep00001", "later000"}, "an end that no process had handled, and a wait that is over"
    registry.complete("running0", attempt=1)
    registry.complete(WAS["retries"]["failed00"])
    assert {job.job_id for _each_chain in range(2) for job in registry.sweep()} >= {"after000", new}
    assert store.get("after002").status is Status.PENDING
    assert registry.pick("v14", owner="worker") == store.get("pending0"), "the one that a pause tries first"
    assert registry.pick("v14", owner="worker") == store.get("key00000")

    assert store.holder("repo") == "holder00"
    assert registry.pick("keyed", owner="worker") is None
    registry.complete("holder00", attempt=1)
    assert registry.pick("keyed", owner="worker") == store.get("behind01")

    with pytest.raises(GenerationLost):
        registry.announce("tpu", "first")
    assert [job.job_id for job in registry.announce("tpu", "third")] == ["session0"]
    store.close()


def test_a_failure_in_the_middle_leaves_it_as_it_was(mam: Mam, old: str) -> None:
    with psycopg.connect(old, autocommit=True) as connection:
        connection.execute("CREATE VIEW public.mine AS SELECT job_id FROM mam.job")
        try:
            mam("init", "--store", old).failed(9, "other objects depend on them")
            assert connection.execute("SELECT version FROM mam.store").fetchall() == [(14,)]
        finally:
            connection.execute("DROP VIEW public.mine")
    assert mam("init", "--store", old).code == 0


def test_a_record_that_cannot_be_read_is_named_and_nothing_is_changed(mam: Mam, old: str) -> None:
    with psycopg.connect(old, autocommit=True) as connection:
        connection.execute("UPDATE mam.job SET record = '{oops' WHERE job_id = 'odd00000'")
        mam("init", "--store", old).failed(9, "'{oops' cannot be read", "repair or delete it")
        assert connection.execute("SELECT version FROM mam.store").fetchall() == [(14,)]


def test_one_that_is_being_filled_stays_so(old: str) -> None:
    with psycopg.connect(old, autocommit=True) as connection:
        connection.execute("UPDATE mam.store SET version = -version")
        create_postgres_store(old, filling=True)
        assert connection.execute("SELECT version FROM mam.store").fetchall() == [(-VERSION,)]
    with pytest.raises(StoreUnavailable, match="partly filled"):
        PostgresStore(old)


@pytest.mark.parametrize("version", [1, 13])
def test_an_older_one_is_refused_with_one_line(mam: Mam, old: str, version: int) -> None:
    with psycopg.connect(old, autocommit=True) as connection:
        connection.execute("UPDATE mam.store SET version = %s", (version,))
        for verb in ("init", "list"):
            mam(verb, "--store", old).failed(
                9, f"schema {version} of a mam before 0.1.0", "mam 0.1.0 brings it up to date"
            )
        assert connection.execute("SELECT version FROM mam.store").fetchall() == [(version,)]


OLD_STATEMENTS = {
    "opening it": "SELECT version, (SELECT xact FROM mam.journal ORDER BY xact DESC LIMIT 1) FROM mam.store",
    "a claim": "UPDATE mam.job SET record = record WHERE blocked = 0",
    "a registration": "INSERT INTO mam.numbered (number, job_id) VALUES (1000, 'x')",
    "an entry": "INSERT INTO mam.journal (job_id, fields, said) VALUES ('x', '{}', '[]')",
    "a pause": "INSERT INTO mam.pause (agent, label, since) VALUES ('', '', 'now')",
    "a position of a relay": "INSERT INTO mam.relay (broker, sent) VALUES ('b', '{}')",
    "the end of a line": "UPDATE mam.store SET moves = moves + 1",
}
"""What mam 0.1.0 names in each of its writes, and when it opens a store."""


@pytest.mark.parametrize("what", OLD_STATEMENTS)
def test_an_older_mam_is_refused_afterwards(old: str, what: str) -> None:
    """Also one that has the database open: each of its writes names something that is gone."""
    with psycopg.connect(old, autocommit=True) as connection:
        try:
            connection.execute(OLD_STATEMENTS[what].encode())
        except psycopg.errors.UniqueViolation:
            pass  # known to the old schema, which is what matters here
        create_postgres_store(old)
        with pytest.raises((psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedTable)):
            connection.execute(OLD_STATEMENTS[what].encode())
