"""What a server's refusals mean, in one line that says what to do, and without a password."""

from __future__ import annotations

import psycopg
from psycopg import errors

from mam.errors import StoreMissing, StoreUnavailable
from mam.stores.postgres import connection as connecting
from mam.stores.postgres.ownership import ANOTHERS, CLOSED, closed, foreign, whose_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.postgres.connection import Server

_NO_TABLE = (errors.UndefinedTable, errors.InvalidSchemaName)
_DISTRUST = ("root certificate file", "server certificate for", "SSL error: certificate verify failed")
_NO_TLS = "server does not support SSL"


def refusal(server: Server, error: psycopg.Error) -> StoreUnavailable | StoreMissing:
    if isinstance(error, errors.InsufficientPrivilege):
        if _whose(server) == CLOSED:
            return closed(server)
        said = error.diag.message_primary or _one_line(error)
        problem = f"{server.role} may not do that ({said}); docs/stores.md says which rights it needs"
    elif isinstance(error, psycopg.ProgrammingError) and error.sqlstate is not None:
        return _unknown_there(server, error)
    elif isinstance(error, errors.QueryCanceled):
        problem = _given_up(error)
    elif isinstance(error, errors.DiskFull):
        problem = "the server's disk is full"
    elif isinstance(error, errors.ReadOnlySqlTransaction):
        problem = "the server is read-only"
    else:
        problem = _with_advice(server, _one_line(error))
    return StoreUnavailable(store=server.address, problem=server.without_password(problem))


def _unknown_there(server: Server, error: psycopg.Error) -> StoreUnavailable | StoreMissing:
    """The server does not know what mam takes for granted."""
    try:
        whose = _whose(server)
    except StoreUnavailable as away:
        return away
    if whose == ANOTHERS:
        return foreign(server)
    if whose == CLOSED:
        return closed(server)
    if isinstance(error, _NO_TABLE):
        return StoreMissing(store=server.address)
    return StoreUnavailable(store=server.address, problem=server.without_password(_one_line(error)))


def _whose(server: Server) -> str | None:
    try:
        with server.connect() as connection:
            return whose_schema(connection)
    except psycopg.Error:
        return None


def _given_up(error: psycopg.Error) -> str:
    if "user request" in str(error):
        return "somebody on the server has cancelled it; try again"
    longest = f"{connecting.STATEMENT_MS / 1000:g} s"
    return f"the server took longer than the {longest} that mam gives it; somebody may hold a lock there, so try again"


def _one_line(error: psycopg.Error) -> str:
    """The first line says what happened; those behind it are hints."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[0].rsplit(" failed: ", 1)[-1] if lines else type(error).__name__
    return said.removeprefix("FATAL:").strip()


def _with_advice(server: Server, said: str) -> str:
    if "no password supplied" in said:
        return "it wants a password and none was given; put it into ~/.pgpass or PGPASSWORD"
    why = "a host that is not local is only talked to over TLS with its certificate checked; "
    why = why if server.asks_for_proof else ""
    if said.startswith(_DISTRUST):
        return (
            f"{said}: {why}the address may name who vouches for it (sslrootcert=FILE), or want less (sslmode=require)"
        )
    if said.startswith(_NO_TLS):
        return f"{said.rstrip('.')}: {why}turn it on there, or let the address do without (sslmode=disable)"
    return said
