from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from mam.stores.postgres import limits
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tests.postgres.crashes import DisturbedStore


@pytest.fixture
def url(database: str) -> str:
    create_postgres_store(database)
    return database


@pytest.fixture
def store(url: str) -> Iterator[DisturbedStore]:
    store = DisturbedStore(url)
    yield store
    store.close()


@pytest.fixture
def other(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(url)
    yield store
    store.close()


@pytest.fixture
def admin(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAUSE_SECONDS", 0.001)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The server's clock does not obey a test."""
    by_server = [item for item in items if item.nodeid.partition("::")[2].startswith("TestByTheServersClock")]
    obeying = {item for item in by_server if isinstance(item, pytest.Function) and "clock" in item.fixturenames}
    if obeying:
        config.hook.pytest_deselected(items=list(obeying))
        items[:] = [item for item in items if item not in obeying]
