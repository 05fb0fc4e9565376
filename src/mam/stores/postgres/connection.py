"""Connection parameters: host, role, TLS and session settings."""

from __future__ import annotations

import os
from ipaddress import ip_address

import psycopg
from psycopg.conninfo import make_conninfo

from mam.stores.postgres.address import format_address, parse_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.errors import StoreMissing, StoreUnavailable

    Connection = psycopg.Connection[Any]

CONNECT_SECONDS = 10
STATEMENT_MS = 60_000

_STEADY = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off -c jit=off"
"""One plan for each query, by its index, whatever the number of jobs and the statistics."""

_FRESH = "-c default_transaction_isolation=read\\ committed"
"""A transaction that waited for a lock sees what its holder wrote, whatever the default of the database."""


class Server:
    """One database of one server, as the user named it."""

    def __init__(self, url: str) -> None:
        self._given = parse_address(url)
        self.address = format_address(self._given)
        self.role = "this role"
        """For messages. The environment or a service file may name the role, so the server is asked."""

    @property
    def requires_tls(self) -> bool:
        """Whether mam adds `verify-full`: the address names no sslmode and the host is not local."""
        return "sslmode" not in self._given and not all(_is_local(host) for host in self._hosts())

    def connect(self) -> Connection:
        try:
            connection = psycopg.connect(self._conninfo(), autocommit=True)
        except psycopg.Error as error:
            raise self.unavailable(error) from None
        self.role = f"role {connection.info.user}"
        return connection

    def unavailable(self, error: psycopg.Error) -> StoreUnavailable | StoreMissing:
        from mam.stores.postgres.error_messages import refusal

        return refusal(self, error)

    def without_password(self, message: str) -> str:
        secret = str(self._given.get("password") or "")
        return message.replace(secret, "…") if secret else message

    def _conninfo(self) -> str:
        own = f"-c statement_timeout={STATEMENT_MS} -c synchronous_commit=on {_STEADY} {_FRESH}"
        safe: dict[str, Any] = {
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "mam",
            "client_encoding": "utf8",
            # A network that drops packets must not block a command for hours.
            "keepalives": 1,
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": 60_000,
        }
        if self.requires_tls:
            safe["sslmode"] = "verify-full"
        options = f"{self._given.get('options') or ''} {own}".strip()
        return make_conninfo(**{**safe, **self._given, "options": options})

    def _hosts(self) -> list[str]:
        """Every host that the address or the environment names."""
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


def text(query: str) -> Any:
    """The driver's types accept only literal strings; mam's queries come from .sql files."""
    return query
