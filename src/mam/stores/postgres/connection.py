"""Connecting: where to, as whom, how safely, and what the server's refusals mean."""

from __future__ import annotations

import os
from ipaddress import ip_address
from urllib.parse import quote, urlencode

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

_STEADY = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off -c jit=off"
"""One plan for each query, by its index, however many jobs there are and whatever the statistics say of them."""

_FRESH = "-c default_transaction_isolation=read\\ committed"
"""Who has waited for a lock sees what its holder did, also where the database would have it otherwise."""


class Server:
    """One database of one server, as the user named it."""

    def __init__(self, url: str) -> None:
        try:
            self._given = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            raise _not_an_address() from None  # what the library says may repeat a password
        if any("@" in str(self._given.get(part) or "") for part in ("host", "dbname")):
            raise _not_an_address()
        self.address = _address(self._given)
        self.channel = f"{SCHEMA}_news"

    def connect(self) -> Connection:
        try:
            return psycopg.connect(self._conninfo(), autocommit=True)
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
        """The first line says what happened; those behind it are hints."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = lines[0].rsplit(" failed: ", 1)[-1] if lines else type(error).__name__
        return _without(str(self._given.get("password") or ""), said.removeprefix("FATAL:").strip())

    def _conninfo(self) -> str:
        own = f"-c search_path={SCHEMA} -c statement_timeout={STATEMENT_MS} -c synchronous_commit=on {_STEADY} {_FRESH}"
        safe: dict[str, Any] = {
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "mam",
            "client_encoding": "utf8",
            # A network that swallows packets must not hold a verb for hours.
            "keepalives": 1,
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": 60_000,
        }
        if not all(_is_local(host) for host in self._hosts()):
            safe["sslmode"] = "verify-full"
        options = f"{self._given.get('options') or ''} {own}".strip()
        return make_conninfo(**{**safe, **self._given, "options": options})

    def _hosts(self) -> list[str]:
        """Every host that may be talked to, also those that only the environment names."""
        host = self._given.get("host") or os.environ.get("PGHOST") or ""
        address = self._given.get("hostaddr") or os.environ.get("PGHOSTADDR") or ""
        return str(address or host).split(",")


def _is_local(host: str) -> bool:
    if not host or host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _not_an_address() -> BadInput:
    example = "postgresql://user@host:5432/database"
    return BadInput(
        why=f"that is not a PostgreSQL address, such as {example}; @ / : in a password are written %40 %2F %3A"
    )


def text(query: str) -> Any:
    """Queries come from mam's own .sql files; the driver's types would rather see them in the code."""
    return query


def _address(given: dict[str, Any]) -> str:
    """What could be given to `--store` again, but for the password."""
    shown = {name: str(value) for name, value in given.items() if value is not None and "password" not in name}
    user = f"{quote(shown.pop('user'), safe='')}@" if "user" in shown else ""
    host = shown.pop("host", "") if not shown.get("host", "").startswith(("/", "@")) else ""
    host = f"[{host}]" if ":" in host else host
    port = f":{shown.pop('port')}" if "port" in shown else ""
    name = quote(shown.pop("dbname", ""), safe="")
    settings = f"?{urlencode(shown, safe='/', quote_via=quote)}" if shown else ""
    return f"postgresql://{user}{host}{port}/{name}{settings}"


def _without(secret: str, said: str) -> str:
    return said.replace(secret, "…") if secret else said
