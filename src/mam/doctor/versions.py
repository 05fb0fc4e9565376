"""Check the versions of SQLite and PostgreSQL."""

from __future__ import annotations

import sys

from mam import __version__
from mam.doctor.finding import fine, wrong
from mam.location.stores import POSTGRES
from mam.util.extras import APSW, command_to_install

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding

BROKEN_FROM, MENDED_IN = (3, 7, 0), (3, 51, 3)
"""SQLite's WAL-reset bug: two connections that write or checkpoint at the same moment may lose pages of the log."""
LEAST_POSTGRES = 13


def check(context: Context) -> Iterator[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    yield fine(f"mam {__version__}, Python {python}")
    if context.kind != POSTGRES:
        yield from sqlite_findings(_carried())
    elif context.try_open() is not None:
        yield from _postgres(context)


def sqlite_findings(version: str) -> Iterator[Finding]:
    if _is_broken(version):
        yield wrong(
            f"SQLite {version} has the WAL-reset bug (3.7.0 to 3.51.2)",
            "concurrent writers can damage the database, very rarely",
            command_to_install(APSW),
        )
    else:
        yield fine(f"SQLite {version}, without the WAL-reset bug")


def _carried() -> str:
    import apsw

    return str(apsw.sqlite_lib_version())


def _is_broken(version: str) -> bool:
    return BROKEN_FROM <= tuple(int(part) for part in version.split(".")[:3]) < MENDED_IN


def _postgres(context: Context) -> Iterator[Finding]:
    import psycopg

    from mam.stores.postgres.connection import Server

    assert context.located is not None
    with Server(context.located.address).connect() as connection:
        number = connection.info.server_version
    shown = f"{number // 10000}.{number % 10000}"
    if number // 10000 < LEAST_POSTGRES:
        why = f"mam needs {LEAST_POSTGRES}: gen_random_uuid"
        yield wrong(f"PostgreSQL {shown} is too old", why, "upgrade the server")
    else:
        yield fine(f"PostgreSQL {shown}, psycopg {psycopg.__version__}")
