"""A schema of an older version is brought up to date by `mam init`, with everything that is in it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from mam.errors import StoreUnavailable
from mam.stores.postgres import schema as schemas
from mam.stores.postgres.store import create_postgres_store
from tests.cli.command import Mam
from tests.postgres.settled import SettledStore
from tests.upgrades import check_everything_is_there, check_work_goes_on, data_of

HERE = Path(__file__).parent


@pytest.fixture(params=range(1, len(schemas.SCHEMAS)))
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def old(database: str, version: int) -> str:
    folder = Path(schemas.__file__).parent
    with psycopg.connect(database, autocommit=True, options="-c search_path=mam") as connection:
        connection.execute("CREATE SCHEMA mam")
        written, data = data_of(version, HERE)
        steps = [folder / name for name in schemas.SCHEMAS]
        for step in (*steps[:written], data, *steps[written:version]):
            connection.execute(step.read_bytes())
        connection.execute("UPDATE store SET version = %s", (version,))
    return database


def test_it_is_refused_until_somebody_asks_for_it(mam: Mam, old: str, version: int) -> None:
    said = f"schema {version} of {len(schemas.SCHEMAS)}"
    mam("list", "--store", old).failed(9, said, "mam init")
    mam("register", "p", "--agent", "a", "--store", old).failed(9, said)


def test_everything_is_there_afterwards_and_work_goes_on(mam: Mam, old: str, version: int) -> None:
    assert mam("init", "--store", old).code == 0
    store = SettledStore(old)
    check_everything_is_there(store, version)
    check_work_goes_on(store, version)
    store.close()


def test_a_failure_in_the_middle_leaves_it_as_it_was(mam: Mam, old: str, version: int) -> None:
    with psycopg.connect(old, autocommit=True) as connection:
        # Somebody's own, in the way of the last step of all.
        connection.execute(f"ALTER TABLE mam.store ADD CONSTRAINT in_the_way CHECK (version = {version})")
        mam("init", "--store", old).failed(9, "in_the_way")
        assert connection.execute("SELECT version FROM mam.store").fetchall() == [(version,)]
        connection.execute("ALTER TABLE mam.store DROP CONSTRAINT in_the_way")
    assert mam("init", "--store", old).code == 0
    store = SettledStore(old)
    check_everything_is_there(store, version)
    store.close()


def test_one_that_is_being_filled_stays_so(old: str, version: int) -> None:
    with psycopg.connect(old, autocommit=True) as connection:
        connection.execute("UPDATE mam.store SET version = -version")
        create_postgres_store(old, filling=True)
        assert connection.execute("SELECT version FROM mam.store").fetchall() == [(-len(schemas.SCHEMAS),)]
    with pytest.raises(StoreUnavailable, match="partly filled"):
        SettledStore(old)


def test_who_has_an_older_one_open_is_refused_from_then_on(database: str) -> None:
    """Programs of schema 12 and before knew these by other names: what they write would not move the line."""
    create_postgres_store(database)
    for written in (
        "INSERT INTO journal (job_id, fields, lines) VALUES ('x', '{}', '[]')",
        "INSERT INTO pause (agent, label, until, reason, made_at, probe) VALUES ('', '', NULL, NULL, 'now', NULL)",
    ):
        with psycopg.connect(database, options="-c search_path=mam") as connection:
            with pytest.raises(psycopg.errors.UndefinedColumn):
                connection.execute(written.encode())
