"""Connection parameters: host, role, TLS and session settings."""

from __future__ import annotations

import os
import time
from ipaddress import ip_address

import psycopg
from psycopg.conninfo import make_conninfo

from mam.stores.postgres import limits
from mam.stores.postgres.address import format_address, parse_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from psycopg.abc import PQGen

    from mam.errors import StoreMissing, StoreUnavailable, StoreUnconfirmed

    RV = TypeVar("RV")
    Connection = psycopg.Connection[Any]

_STEADY = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off"}
"""One plan for each query, by its index, whatever the number of jobs and the statistics."""

_SAFE = {
    "synchronous_commit": "on",
    # A transaction that waited for a lock sees what its holder wrote, whatever the default of the database.
    "default_transaction_isolation": "read committed",
}

_NO_OPTIONS = "unsupported startup parameter"

_TAKING_OVER = (
    "session is read-only",  # no host of the address accepts writes yet
    "the database system is starting up",
    "the database system is shutting down",
    "the database system is in recovery mode",
    "the database system is not yet accepting connections",
    "the database system is not accepting connections",
)
"""Answers of servers that are there, while another one becomes the primary or this one starts."""


class AnsweringConnection(psycopg.Connection["Any"]):
    """A connection that is lost when the server does not answer in time."""

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, limits.ANSWER_SECONDS)
        except psycopg.errors._WaitTimeout:
            self.pgconn.finish()
            raise NoAnswer from None


class NoAnswer(psycopg.OperationalError):
    """The server did not answer in time; what it was asked for may take effect later."""

    def __str__(self) -> str:
        return f"the server did not answer within {limits.ANSWER_SECONDS:g} s"


class Server:
    """One database of one server, as the user named it."""

    def __init__(self, url: str, lease_seconds: float | None = None) -> None:
        self._given = parse_address(url)
        self._limits = limits.limits(lease_seconds, len(self._hosts()))
        self.address = format_address(self._given)
        self.role = "this role"
        """For messages. The environment or a service file may name the role, so the server is asked."""
        self.is_pooled = False
        """Whether a pooler is in between: a setting, a prepared statement or a lock of the session may be lost."""

    @property
    def patience_seconds(self) -> float:
        return limits.PATIENCE_SECONDS * self._limits.patience_share

    @property
    def requires_tls(self) -> bool:
        """Whether mam adds `verify-full`: the address names no sslmode and the host is not local."""
        return "sslmode" not in self._given and not all(_is_local(host) for host in self._hosts())

    def connect(self, ends: float | None = None) -> Connection:
        """A command that starts during a failover waits for its end, as one that was connected before does. `ends`: the
        monotonic time of the last try."""
        ends = time.monotonic() + self.patience_seconds if ends is None else ends
        while True:
            try:
                connection = self._connect()
            except psycopg.Error as error:
                if time.monotonic() >= ends or not any(answer in str(error) for answer in _TAKING_OVER):
                    raise self.unavailable(error) from None
                time.sleep(limits.PAUSE_SECONDS)
            else:
                self.role = f"role {connection.info.user}"
                return connection

    def _connect(self) -> Connection:
        if not self.is_pooled:
            try:
                return AnsweringConnection.connect(self._conninfo(), autocommit=True, prepare_threshold=None)
            except psycopg.OperationalError as error:
                if _NO_OPTIONS not in str(error):
                    raise
                self.is_pooled = True
        return AnsweringConnection.connect(self._conninfo(), autocommit=True, prepare_threshold=None)

    @property
    def begin(self) -> str:
        """Begins a transaction. Behind a pooler it brings the settings, and returns which server process works."""
        if not self.is_pooled:
            return "BEGIN"
        settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _settings().items())
        process = "pg_backend_pid(), transaction_timestamp()::text"
        return f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT {process}, {settings}"

    def unavailable(self, error: psycopg.Error) -> StoreUnavailable | StoreMissing:
        from mam.stores.postgres.error_messages import refusal

        return refusal(self, error)

    def unconfirmed(self) -> StoreUnconfirmed:
        from mam.errors import StoreUnconfirmed

        return StoreUnconfirmed(store=self.address, seconds=f"{limits.ANSWER_SECONDS:g}")

    def without_password(self, message: str) -> str:
        secret = str(self._given.get("password") or "")
        return message.replace(secret, "…") if secret else message

    def _conninfo(self) -> str:
        own: dict[str, Any] = {"application_name": "mam", "client_encoding": "utf8", **self._limits.for_client}
        if self.requires_tls:
            own["sslmode"] = "verify-full"
        if len(self._hosts()) > 1:
            own["target_session_attrs"] = "read-write"
        if self.is_pooled:
            return make_conninfo(**{**own, **self._given})
        settings = {**_settings(), **self._limits.for_server}
        start = " ".join(f"-c {name}={_escaped(str(value))}" for name, value in settings.items())
        return make_conninfo(**{**own, **self._given, "options": f"{self._given.get('options') or ''} {start}".strip()})

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


def _settings() -> dict[str, str]:
    return {**_STEADY, **_SAFE, "statement_timeout": f"{limits.STATEMENT_SECONDS * 1000:.0f}"}


def _escaped(value: str) -> str:
    return value.replace(" ", "\\ ")


def text(query: str) -> Any:
    """The driver's types accept only literal strings; mam's queries come from .sql files."""
    return query
