"""A store of schema 15 gets the tables that were added since, and ends up like a new one."""

from __future__ import annotations

from pathlib import Path

import psycopg

from mam.stores.postgres.schema import VERSION
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tests.cli.command import Mam

HERE = Path(__file__).parent
COLUMNS = """SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default
             FROM information_schema.columns WHERE table_schema = 'mam' ORDER BY 1, 2"""
INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'mam' ORDER BY 1"
FUNCTIONS = "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'mam'::regnamespace ORDER BY 1"


def described(url: str) -> list[object]:
    with psycopg.connect(url) as connection:
        return [connection.execute(query.encode()).fetchall() for query in (COLUMNS, INDEXES, FUNCTIONS)]


def test_it_becomes_like_a_new_one(mam: Mam, database: str) -> None:
    create_postgres_store(database)
    new = described(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA mam CASCADE; CREATE SCHEMA mam")
        connection.execute((HERE / "version_15.sql").read_bytes())
        connection.execute("INSERT INTO mam.store VALUES (1, 15, 'e15')")
    mam("list", "--store", database).failed(9, f"schema 15 of {VERSION}", "mam init")
    assert mam("init", "--store", database).code == 0
    assert described(database) == new
    store = PostgresStore(database)
    assert store.journal_id == "e15", "the journal goes on"
    store.close()
