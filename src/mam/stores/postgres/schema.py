"""Making the schema, or bringing an older one up to date. The role that works afterwards needs no right to do this."""

from __future__ import annotations

import os

import psycopg

from mam.errors import StoreUnavailable
from mam.stores.postgres.connection import SCHEMA, Server, text

SCHEMAS = ("schema_0001.sql",)
"""In order; the store's version is how many of them it has."""

_LOCK = 0x6D616D31


def create_schema(server: Server, journal_id: str) -> bool:
    """Whether there was anything to do. Two that do it at once wait for each other."""
    with server.connect() as connection:
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                version = _version(connection)
                check_not_newer(server, version)
                if version == len(SCHEMAS):
                    return False
                if version == 0:
                    connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
                for name in SCHEMAS[version:]:
                    connection.execute(text(_file(name)))
                if version == 0:
                    connection.execute("INSERT INTO store VALUES (1, %s, %s)", (len(SCHEMAS), journal_id))
                else:
                    connection.execute("UPDATE store SET version = %s", (len(SCHEMAS),))
                return True
        except psycopg.Error as error:
            raise server.unavailable(error) from None


def schema_text() -> str:
    """All of it, as `mam init --sql` prints it."""
    head = f"CREATE SCHEMA {SCHEMA};\nSET search_path = {SCHEMA};\n\n"
    tail = f"\nINSERT INTO store VALUES (1, {len(SCHEMAS)}, replace(gen_random_uuid()::text, '-', ''));\n"
    return head + "".join(_file(name) for name in SCHEMAS) + tail


def check_version(server: Server, version: int) -> None:
    check_not_newer(server, version)
    if version < len(SCHEMAS):
        raise StoreUnavailable(
            store=server.address, problem=f"has schema {version} of {len(SCHEMAS)}; `mam init` brings it up to date"
        )


def check_not_newer(server: Server, version: int) -> None:
    if version > len(SCHEMAS):
        raise StoreUnavailable(store=server.address, problem=f"has schema {version}, which only a newer mam knows")


def _version(connection: psycopg.Connection[tuple[int]]) -> int:
    there = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (f"{SCHEMA}.store",)).fetchone()
    if there is None or not there[0]:
        return 0
    row = connection.execute("SELECT version FROM store").fetchone()
    return int(row[0]) if row else 0


def _file(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()
