"""A schema of an older version is brought up to date by `mam init`, with everything that is in it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from mam.stores.postgres import schema as schemas
from mam.stores.postgres.store import PostgresStore
from tests.cli.command import Mam
from tests.upgrades import check_everything_is_there, check_work_goes_on

HERE = Path(__file__).parent


@pytest.fixture
def mam(tmp_path: Path) -> Mam:
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    return Mam(here, home)


@pytest.fixture
def old(database: str) -> str:
    schema = (Path(schemas.__file__).parent / "schema_0001.sql").read_text(encoding="utf-8")
    with psycopg.connect(database, autocommit=True, options="-c search_path=mam") as connection:
        connection.execute("CREATE SCHEMA mam")
        connection.execute(schema.encode())
        connection.execute((HERE / "version_1.sql").read_bytes())
    return database


def test_it_is_refused_until_somebody_asks_for_it(mam: Mam, old: str) -> None:
    mam("list", "--store", old).failed(9, "schema 1 of 2", "mam init")
    mam("register", "p", "--agent", "a", "--store", old).failed(9, "schema 1 of 2")


def test_everything_is_there_afterwards_and_work_goes_on(mam: Mam, old: str) -> None:
    assert mam("init", "--store", old).code == 0
    store = PostgresStore(old)
    check_everything_is_there(store)
    check_work_goes_on(store)
    store.close()


def test_a_failure_in_the_middle_leaves_it_as_it_was(mam: Mam, old: str) -> None:
    with psycopg.connect(old, autocommit=True) as connection:
        connection.execute("CREATE TABLE mam.unsettled ()")  # somebody's own, in the way of the last steps
        mam("init", "--store", old).failed(9, "unsettled")
        assert connection.execute("SELECT version FROM mam.store").fetchall() == [(1,)]
        connection.execute("DROP TABLE mam.unsettled")
    assert mam("init", "--store", old).code == 0
    store = PostgresStore(old)
    check_everything_is_there(store)
    store.close()
