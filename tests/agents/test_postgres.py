"""The session directory in PostgreSQL. `MAM_RACES=1000` makes the race of twelve generations as long as the one on
files, which takes some minutes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from mam.agents.acts import publish
from mam.agents.postgres_directory import PostgresDirectory
from mam.machine.processes import ProcessId, is_alive
from mam.stores.postgres.store import create_postgres_store
from mam.testing.clock import FakeClock
from tests.agents.races import race
from tests.agents.records import a_record
from tests.agents.sessions import Sessions
from tests.agents.suite import DirectorySuite, Plant
from tests.cli.command import Mam
from tests.waiting import await_that


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def home(database: str) -> str:
    create_postgres_store(database)
    return database


class TestPostgres(DirectorySuite):
    @pytest.fixture
    def directory(self, home: str, clock: FakeClock) -> Iterator[PostgresDirectory]:
        directory = PostgresDirectory(home, clock)
        yield directory
        directory.close()

    @pytest.fixture
    def plant(self, home: str) -> Plant:
        def plant(agent_id: str, content: bytes) -> None:
            with psycopg.connect(home, autocommit=True) as connection:
                connection.execute(
                    "INSERT INTO mam.agent_record VALUES (%s, 'g', 'n', %s, 0)", (agent_id, content.decode())
                )

        return plant


def test_one_of_twelve_generations_wins_every_time(home: str) -> None:
    race(partial(PostgresDirectory, home), rounds=int(os.environ.get("MAM_RACES", "200")))


def test_the_servers_clock_judges(home: str) -> None:
    directory = PostgresDirectory(home)
    directory.change("x", publish(a_record(agent_id="x"), 3600))

    record = directory.read("x").record
    assert record is not None
    assert record.mam.lease_boot is None  # a boot id of this host means nothing on another one
    with psycopg.connect(home, autocommit=True) as connection:
        row = connection.execute(
            "SELECT lease_expires_ms - (extract(epoch FROM clock_timestamp()) * 1000)::bigint, name FROM"
            " mam.agent_record"
        ).fetchone()
    assert row is not None
    assert 0 < row[0] <= 3_600_000
    assert row[1] == "gpu"
    directory.close()


def test_the_verbs_use_it_when_the_jobs_are_there(home: str, mam: Mam) -> None:
    with TemporaryDirectory(prefix="mam-t-") as folder:
        sessions = Sessions(mam, Path(folder))
        mam.env["MAM_STORE"] = home
        agent_id, generation = mam("agents", "start", "gpu", "--", "cat").line.split("\t")
        assert not (sessions.agents / "live_agents").exists()
        assert mam("agents", "resolve", "gpu").line == agent_id
        shown = mam("agents", "show", "gpu").json
        assert "lease_boot" not in shown["mam"]
        mam("agents", "start", "gpu", "--", "cat").failed(4, generation)
        status = mam("agents", "status", "--json").json[0]
        assert (status["tmux"], status["process"], status["companion"], status["drift"]) == (
            "there", "there", "there", [],
        )  # fmt: skip
        assert mam("agents", "send", "gpu", "hello").code == 0
        companion = ProcessId.from_json(shown["mam"]["companion"])
        assert companion is not None
        assert mam("agents", "stop", "gpu").line == agent_id
        await_that(lambda: not is_alive(companion))
        mam("agents", "resolve", "gpu").failed(1, "stopped")
        assert mam("agents", "cleanup", "--json").json["kept"][0]["agent_id"] == agent_id
        sessions.close()


def test_a_server_that_is_not_there_is_one_line_and_9(mam: Mam) -> None:
    mam("agents", "list", MAM_STORE="postgresql://u:canary@/x?host=/nowhere").failed(9)
    assert "canary" not in mam("agents", "list", MAM_STORE="postgresql://u:canary@/x?host=/nowhere").stderr
