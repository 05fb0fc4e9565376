"""The directory in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import psycopg
import pytest

from mam.agents.acts import publish
from mam.agents.directory_postgres import PostgresDirectory
from mam.stores.postgres.store import create_postgres_store
from mam.testing.clock import FakeClock
from tests.agents.races import race
from tests.agents.records import a_record
from tests.agents.suite import DirectorySuite, Plant


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


def test_of_twelve_generations_one_wins_every_time(home: str) -> None:
    race(partial(PostgresDirectory, home), rounds=200)


def test_the_servers_clock_judges(home: str) -> None:
    directory = PostgresDirectory(home)
    directory.change("x", publish(a_record(agent_id="x"), 3600))

    record = directory.look("x").record
    assert record is not None
    assert record.place.lease_boot is None  # a boot of this host says nothing on another one
    with psycopg.connect(home, autocommit=True) as connection:
        row = connection.execute(
            "SELECT lease_expires_ms - (extract(epoch FROM clock_timestamp()) * 1000)::bigint, name FROM"
            " mam.agent_record"
        ).fetchone()
    assert row is not None
    assert 0 < row[0] <= 3_600_000
    assert row[1] == "gpu"
    directory.close()
