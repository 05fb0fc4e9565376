"""Rows that somebody else has written."""

from __future__ import annotations

import psycopg
import pytest

from mam.registry import Registry
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tests.damage import (
    SPOILT,
    VERBS,
    Check,
    check_lease_passed_over,
    check_others_go_on,
    check_passed_over,
    check_spoilt_record,
)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("damage", SPOILT)
def test_a_record_that_was_spoilt_is_told_in_one_line(database: str, damage: str, verb: str) -> None:
    create_postgres_store(database)
    store = PostgresStore(database)
    registry = Registry(store)
    registry.register(prompt="p", agent="a", job_id="bad")
    assert registry.pick("a", owner="me") is not None
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE mam.job SET record = %s", (SPOILT[damage],))
    check_spoilt_record(store, damage, verb)
    check_others_go_on(store)
    store.close()


@pytest.mark.parametrize("check", [check_passed_over, check_lease_passed_over])
@pytest.mark.parametrize("damage", SPOILT)
def test_a_row_that_was_spoilt_is_in_nobodys_way(database: str, damage: str, check: Check) -> None:
    create_postgres_store(database)
    store = PostgresStore(database)

    def write(record: str) -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("UPDATE mam.job SET record = %s WHERE job_id = 'bad'", (record,))

    check(store, write, damage)
    store.close()
