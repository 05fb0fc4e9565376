"""Translates errors of the server into one line that tells the user what to do, without a password."""

from __future__ import annotations

import psycopg
from psycopg import errors

from mam.errors import StoreMissing, StoreUnavailable
from mam.stores.postgres import limits
from mam.stores.postgres.ownership import (
    CLOSED,
    FOREIGN,
    MISSING,
    closed,
    elsewhere,
    foreign,
    schema_owner,
    stores_elsewhere,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.postgres.connection import Server

_NO_TABLE = (errors.UndefinedTable, errors.InvalidSchemaName)
_DISTRUST = ("root certificate file", "server certificate for", "SSL error: certificate verify failed")
_READ_ONLY = "session is read-only"
_NO_TLS = "server does not support SSL"


def refusal(server: Server, error: psycopg.Error) -> StoreUnavailable | StoreMissing:
    if isinstance(error, errors.InsufficientPrivilege):
        if _owner(server) == CLOSED:
            return closed(server)
        reason = error.diag.message_primary or _one_line(error)
        problem = f"{server.role} may not do that ({reason}); docs/stores.md says which rights it needs"
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
    """The server lacks a table, a column or a function of mam."""
    try:
        with server.connect() as connection:
            owner, schemas = schema_owner(connection), stores_elsewhere(connection)
    except psycopg.Error:
        owner, schemas = None, []
    except StoreUnavailable as away:
        return away
    if owner == FOREIGN:
        return foreign(server)
    if owner == CLOSED:
        return closed(server)
    if owner == MISSING and schemas:
        return elsewhere(server, schemas)
    if isinstance(error, _NO_TABLE):
        return StoreMissing(store=server.address)
    return StoreUnavailable(store=server.address, problem=server.without_password(_one_line(error)))


def _owner(server: Server) -> str | None:
    try:
        with server.connect() as connection:
            return schema_owner(connection)
    except psycopg.Error:
        return None


def _given_up(error: psycopg.Error) -> str:
    if "user request" in str(error):
        return "it was cancelled on the server; try again"
    longest = f"{limits.STATEMENT_SECONDS:g} s"
    return f"the server took longer than {longest}; another session may hold a lock there, so try again"


def _one_line(error: psycopg.Error) -> str:
    """The first line; the others are hints."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0].rsplit(" failed: ", 1)[-1] if lines else type(error).__name__
    return first.removeprefix("FATAL:").strip()


def _with_advice(server: Server, message: str) -> str:
    if "no password supplied" in message:
        return "it wants a password and none was given; put it into ~/.pgpass or PGPASSWORD"
    why = "mam connects to a host that is not local only over TLS with a verified certificate; "
    why = why if server.requires_tls else ""
    if _READ_ONLY in message:
        return f"no server of the address accepts writes ({_READ_ONLY}); a standby may be about to take over"
    if message.startswith(_DISTRUST):
        advice = "name the root certificate in the address (sslrootcert=FILE), or require less (sslmode=require)"
        return f"{message}: {why}{advice}"
    if message.startswith(_NO_TLS):
        return f"{message.rstrip('.')}: {why}turn it on there, or turn it off in the address (sslmode=disable)"
    return message
