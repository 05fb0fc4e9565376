"""The relay's locks on PostgreSQL: advisory locks, each held by a transaction on a connection of its own.

A pooler may give the server process of a session to others, but not that of a transaction. A broken connection loses
its lock. Two relays may then send for a moment, and some events are sent twice.
"""

from __future__ import annotations

import time

import psycopg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.bus.settings import Broker
    from mam.stores.postgres.store import PostgresStore

_LOOK_SECONDS = 0.05
_SPACE = 0x6D616D72
"""Separates these advisory locks from those of jobs and sessions."""

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 0"
_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, %s))"


class PostgresRelayLocks:
    def __init__(self, store: PostgresStore, broker: Broker) -> None:
        self._broker = broker.address
        self._store = store

    def prepare(self) -> None:
        """Nothing to create on the server."""

    def has_resident(self) -> bool:
        return not self._store.is_relay_lock_free(self._name("resident"), _SPACE)

    def send_lock(self) -> AdvisoryLock:
        return AdvisoryLock(self._store, self._name("lock"))

    def resident_lock(self) -> AdvisoryLock:
        return AdvisoryLock(self._store, self._name("resident"))

    def _name(self, what: str) -> str:
        return f"relay {what} {self._broker}"


class AdvisoryLock:
    """An advisory lock. The server releases it when the holder's connection ends."""

    def __init__(self, store: PostgresStore, name: str) -> None:
        self._store = store
        self._name = name
        self._connection: psycopg.Connection[Any] | None = None

    def take(self, seconds: float = 0) -> bool:
        """Returns whether this process holds the lock."""
        if self._connection is not None and not self._connection.closed:
            return True
        connection = self._store.connect()
        ends = time.monotonic() + seconds
        try:
            connection.execute(_BEGIN)
            while not self._try(connection):
                if time.monotonic() >= ends:
                    connection.close()
                    return False
                time.sleep(_LOOK_SECONDS)
        except psycopg.Error as error:
            connection.close()
            raise self._store.unavailable(error) from None
        self._connection = connection
        return True

    def release(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _try(self, connection: psycopg.Connection[Any]) -> bool:
        row = connection.execute(_LOCK, (self._name, _SPACE)).fetchone()
        return row is not None and row[0] is True
