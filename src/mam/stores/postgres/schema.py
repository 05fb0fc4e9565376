"""Creates or upgrades the schema. The role that works later needs no right to do this."""

from __future__ import annotations

import os

import psycopg

from mam import __version__
from mam.errors import StoreOutdated, StoreUnavailable
from mam.stores.postgres.connection import Server, text
from mam.stores.postgres.ownership import (
    CLOSED,
    FOREIGN,
    MISSING,
    SCHEMA,
    closed,
    elsewhere,
    foreign,
    schema_owner,
    stores_elsewhere,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 18
"""The version of the schema. `step_N.sql` brings a schema of version N - 1 to version N. Version 14 (mam 0.1.0) is
upgraded to the current one at once (upgrade.py); older ones are refused."""

UPGRADABLE = 14
_LOCK = 0x6D616D31


def create_schema(server: Server, journal_id: str, *, filling: bool = False) -> bool:
    """Returns whether it changed anything. Two processes that do this at once wait for each other."""
    with server.connect() as connection:
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                return _create_or_upgrade(server, connection, journal_id, filling=filling)
        except psycopg.Error as error:
            raise server.unavailable(error) from None


def _create_or_upgrade(server: Server, connection: psycopg.Connection[Any], journal_id: str, *, filling: bool) -> bool:
    version = _version(server, connection)
    check_not_newer(server, abs(version))
    if version < 0 and not filling:
        raise unfinished(server)
    if abs(version) == VERSION:
        return False
    if version == 0:
        if schemas := stores_elsewhere(connection):
            raise elsewhere(server, schemas)
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        connection.execute(text(_file("schema.sql")))
        connection.execute("INSERT INTO mam.store VALUES (1, %s, %s)", (VERSION, journal_id))
        return True
    if abs(version) < UPGRADABLE:
        raise _too_old(server, abs(version))
    now = VERSION if version > 0 else -VERSION
    if abs(version) > UPGRADABLE:
        for step in range(abs(version) + 1, VERSION + 1):
            connection.execute(text(_file(f"step_{step}.sql")))
        connection.execute("UPDATE mam.store SET version = %s", (now,))
        return True
    from mam.stores.postgres.upgrade import upgrade

    upgrade(server, connection, _file("schema.sql"))
    connection.execute("INSERT INTO mam.store VALUES (1, %s, %s)", (now, journal_id))
    return True


def schema_text() -> str:
    """All of it, as `mam init --sql` prints it."""
    first = f"INSERT INTO mam.store VALUES (1, {VERSION}, replace(gen_random_uuid()::text, '-', ''));\n"  # noqa: S608
    return f"CREATE SCHEMA {SCHEMA};\n\n{_file('schema.sql')}\n{first}"


def check_version(server: Server, rows: list[Any]) -> None:
    if _number(server, rows) < 0:
        raise unfinished(server)
    check_version_while_importing(server, rows)


def check_version_while_importing(server: Server, rows: list[Any]) -> None:
    version = abs(_number(server, rows))
    check_not_newer(server, version)
    if version == VERSION:
        return
    if version < UPGRADABLE:
        raise _too_old(server, version)
    raise StoreOutdated(store=server.address, version=version, current=VERSION)


def _too_old(server: Server, version: int) -> StoreUnavailable:
    problem = f"has schema {version} of a mam before 0.1.0; mam 0.1.0 brings it up to date, then this one does"
    return StoreUnavailable(store=server.address, problem=problem)


def _number(server: Server, rows: list[Any]) -> int:
    if len(rows) != 1 or not isinstance(rows[0][0], int):
        raise foreign(server)
    return int(rows[0][0])


def unfinished(server: Server) -> StoreUnavailable:
    problem = "is only partly filled; run the interrupted `mam migrate` again to complete it"
    return StoreUnavailable(store=server.address, problem=problem)


def check_not_newer(server: Server, version: int) -> None:
    if version > VERSION:
        problem = f"has schema {version}, which only a newer mam knows; this is mam {__version__}: install a newer one"
        raise StoreUnavailable(store=server.address, problem=problem)


def _version(server: Server, connection: psycopg.Connection[Any]) -> int:
    """0 when there is no schema yet, or an empty one."""
    owner = schema_owner(connection)
    if owner == MISSING:
        return 0
    if owner == FOREIGN:
        raise foreign(server)
    if owner == CLOSED:
        raise closed(server)
    return _number(server, connection.execute("SELECT version FROM mam.store").fetchall())


def _file(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()
