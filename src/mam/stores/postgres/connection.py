"""Connecting: where to, as whom, how safely, and what the server's refusals mean."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mam.errors import BadInput, StoreMissing, StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Connection = psycopg.Connection[Any]

SCHEMA = "mam"
CONNECT_SECONDS = 10
STATEMENT_MS = 60_000

_LOCAL = ("localhost", "127.", "::1", "/", "@")


class Server:
    """One database of one server, as the user named it."""

    def __init__(self, url: str) -> None:
        try:
            self._given = conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise BadInput(why=f"that is not a PostgreSQL address: {_without(url, str(error))}") from None
        self.address = _address(self._given)
        self.channel = f"{SCHEMA}_news"

    def connect(self) -> Connection:
        try:
            return psycopg.connect(self._conninfo(), autocommit=True, prepare_threshold=3)
        except psycopg.Error as error:
            raise self.unavailable(error) from None

    def unavailable(self, error: psycopg.Error) -> StoreUnavailable | StoreMissing:
        """What the server says, in one line and without a password."""
        if isinstance(error, (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)):
            return StoreMissing(store=self.address)
        problems: list[tuple[type[psycopg.Error], str]] = [
            (psycopg.errors.InsufficientPrivilege, "this role may not do that here; ask for the rights of `mam init`"),
            (psycopg.errors.QueryCanceled, "the server took too long and gave up"),
            (psycopg.errors.DiskFull, "the server's disk is full"),
            (psycopg.errors.ReadOnlySqlTransaction, "the server is read-only"),
        ]
        for kind, problem in problems:
            if isinstance(error, kind):
                return StoreUnavailable(store=self.address, problem=problem)
        return StoreUnavailable(store=self.address, problem=self._one_line(error))

    def _one_line(self, error: psycopg.Error) -> str:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = lines[-1] if lines else type(error).__name__
        return _without(str(self._given.get("password") or ""), said.removeprefix("FATAL:").strip())

    def _conninfo(self) -> str:
        safe: dict[str, Any] = {
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "mam",
            "options": f"-c search_path={SCHEMA} -c statement_timeout={STATEMENT_MS} -c synchronous_commit=on",
        }
        host = str(self._given.get("host") or "/")
        if not host.startswith(_LOCAL):
            safe["sslmode"] = "verify-full"
        return make_conninfo(**{**safe, **self._given})


def text(query: str) -> Any:
    """Queries come from mam's own .sql files; the driver's types would rather see them in the code."""
    return query


def _address(given: dict[str, Any]) -> str:
    user = f"{given['user']}@" if given.get("user") else ""
    port = f":{given['port']}" if given.get("port") else ""
    return f"postgresql://{user}{given.get('host', '')}{port}/{given.get('dbname', '')}"


def _without(secret: str, said: str) -> str:
    return said.replace(secret, "…") if secret else said
