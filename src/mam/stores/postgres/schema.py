"""Making the schema, or bringing an older one up to date. The role that works afterwards needs no right to do this."""

from __future__ import annotations

import os

import psycopg

from mam import __version__
from mam.errors import StoreUnavailable
from mam.stores.postgres.acting import STATEMENTS
from mam.stores.postgres.connection import Server, text
from mam.stores.postgres.whose import ANOTHERS, CLOSED, NOBODYS, SCHEMA, closed, foreign, whose_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMAS = (
    "schema_0001.sql", "schema_0002.sql", "schema_0003.sql", "schema_0004.sql", "schema_0005.sql", "schema_0006.sql",
    "schema_0007.sql", "schema_0008.sql", "schema_0009.sql", "schema_0010.sql", "schema_0011.sql",
    "schema_0012.sql", "schema_0013.sql", "schema_0014.sql",
)  # fmt: skip
"""In order; the store's version is how many of them it has."""

_LOCK = 0x6D616D31


def create_schema(server: Server, journal_id: str, *, filling: bool = False) -> bool:
    """Whether there was anything to do. Two that do it at once wait for each other."""
    with server.connect() as connection:
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                version = _version(server, connection)
                check_not_newer(server, abs(version))
                if version < 0 and not filling:
                    raise unfinished(server)
                if version == 0:
                    connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
                for name in SCHEMAS[abs(version) :]:
                    connection.execute(text(_file(name)))
                if version == 0:
                    connection.execute("INSERT INTO store VALUES (1, %s, %s)", (len(SCHEMAS), journal_id))
                    return True
                if abs(version) < len(SCHEMAS):  # one that is being filled stays so
                    connection.execute("UPDATE store SET version = sign(version) * %s", (len(SCHEMAS),))
                return _renumbered(connection) or abs(version) < len(SCHEMAS)
        except psycopg.Error as error:
            raise server.unavailable(error) from None


def schema_text() -> str:
    """All of it, as `mam init --sql` prints it."""
    head = f"CREATE SCHEMA {SCHEMA};\nSET search_path = {SCHEMA};\n\n"
    tail = f"\nINSERT INTO store VALUES (1, {len(SCHEMAS)}, replace(gen_random_uuid()::text, '-', ''));\n"
    return head + "".join(_file(name) for name in SCHEMAS) + tail


def check_version(server: Server, rows: list[Any]) -> None:
    version = _number(server, rows)
    if version < 0:
        raise unfinished(server)
    check_version_of_filling(server, rows)
    if rows[0][1]:
        why = "was loaded from a dump of another server, and new entries would go unseen"
        problem = f"{why}; `mam init --store {server.address}` makes it good"
        raise StoreUnavailable(store=server.address, problem=problem)


def check_version_of_filling(server: Server, rows: list[Any]) -> None:
    version = abs(_number(server, rows))
    check_not_newer(server, version)
    if version < len(SCHEMAS):
        problem = f"has schema {version} of {len(SCHEMAS)}; `mam init --store {server.address}` brings it up to date"
        raise StoreUnavailable(store=server.address, problem=problem)


def _renumbered(connection: psycopg.Connection[Any]) -> bool:
    """The journal is read in the order of transactions. Those of another server may be far ahead of this one's: they
    all become the oldest, in the order of their own numbers, and what was found by them gets a row of its own.
    Whoever followed the journal sees that it is another."""
    (found,) = connection.execute(text(STATEMENTS["version"].text)).fetchall()
    if found[1]:
        connection.execute("LOCK TABLE journal IN SHARE ROW EXCLUSIVE MODE")
        connection.execute(
            "INSERT INTO event SELECT told.* FROM told JOIN job USING (job_id) WHERE ended_xact IS NOT NULL"
            " ON CONFLICT DO NOTHING"
        )
        connection.execute("UPDATE job SET ended_xact = NULL WHERE ended_xact IS NOT NULL")
        connection.execute("UPDATE journal SET xact = '3' WHERE xact > '3'")  # the first that any server gives out
    return bool(found[1])


def _number(server: Server, rows: list[Any]) -> int:
    if len(rows) != 1 or not isinstance(rows[0][0], int):
        raise foreign(server)
    return int(rows[0][0])


def unfinished(server: Server) -> StoreUnavailable:
    problem = "is only partly filled; the `mam migrate` that was cut off goes on when it is run again"
    return StoreUnavailable(store=server.address, problem=problem)


def check_not_newer(server: Server, version: int) -> None:
    if version > len(SCHEMAS):
        problem = f"has schema {version}, which only a newer mam knows; this is mam {__version__}: install a newer one"
        raise StoreUnavailable(store=server.address, problem=problem)


def _version(server: Server, connection: psycopg.Connection[Any]) -> int:
    """0 when there is no schema yet, or an empty one."""
    whose = whose_schema(connection)
    if whose == NOBODYS:
        return 0
    if whose == ANOTHERS:
        raise foreign(server)
    if whose == CLOSED:
        raise closed(server)
    return _number(server, connection.execute("SELECT version FROM store").fetchall())


def _file(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()
