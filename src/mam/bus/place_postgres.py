"""The same for a server that many hosts share: one place for each broker in the database, so that no host begins anew.

The locks are the server's, each for as long as a connection of its own lasts. A connection that breaks takes its lock
with it, and for a moment two may send; then some events are sent twice, as after a crash.
"""

from __future__ import annotations

import time

import psycopg

from mam.bus.place import Sent, parse_sent
from mam.writing import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.bus.settings import Broker
    from mam.stores.postgres.store import PostgresStore

_LOOK_SECONDS = 0.05
_SPACE = 0x6D616D72
"""Keeps these locks apart from those of the jobs and of the sessions."""

_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, %s))"


class PostgresPlace:
    def __init__(self, store: PostgresStore, broker: Broker) -> None:
        self.directory = store.address
        self.broker = broker.address
        self._store = store

    def make(self) -> None:
        """`mam init` has."""

    def is_served(self) -> bool:
        return not self._store.is_relay_lock_free(self._name("resident"), _SPACE)

    def load(self) -> Sent | None:
        return parse_sent(self._store.relay_sent(self.broker) or "")

    def save(self, sent: Sent) -> None:
        self._store.keep_relay_sent(self.broker, to_bytes({**sent.as_dict(), "at": sent.at.as_dict()}).decode())

    def sending(self) -> ServerHeld:
        return ServerHeld(self._store, self._name("lock"))

    def staying(self) -> ServerHeld:
        return ServerHeld(self._store, self._name("resident"))

    def _name(self, what: str) -> str:
        return f"relay {what} {self.broker}"


class ServerHeld:
    """A lock that ends with its holder, however that ends."""

    def __init__(self, store: PostgresStore, name: str) -> None:
        self._store = store
        self._name = name
        self._connection: psycopg.Connection[Any] | None = None

    def take(self, seconds: float = 0) -> bool:
        """Whether it is held now, by us."""
        if self._connection is not None and not self._connection.closed:
            return True
        connection = self._store.connect()
        ends = time.monotonic() + seconds
        try:
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
