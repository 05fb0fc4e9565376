"""Waits for notifications of the server, for one thread; where a pooler swallows them, asks now and then."""

from __future__ import annotations

import os
import socket
import time
from _thread import allocate_lock
from threading import Event

import psycopg

from mam.stores.postgres.connection import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.stores.postgres.client import Client
    from mam.stores.postgres.connection import Connection

PROBE_SECONDS, POLL_SECONDS = 1.0, 1.0


class Listener:
    def __init__(self, connection: Connection, channel: str) -> None:
        self._connection = connection
        self._waiting = allocate_lock()
        connection.execute(text(f"LISTEN {channel}"))

    def wait(self, timeout: float) -> bool:
        """Whether a notification came; psycopg.Error when the connection was lost or another thread closed this."""
        with self._waiting:
            return any(True for _ in self._connection.notifies(timeout=timeout, stop_after=1))

    def hears(self, client: Client) -> bool:
        """Whether a notification that another connection sends gets through."""
        channel = f"mam_probe_{os.urandom(8).hex()}"
        self._connection.execute(text(f"LISTEN {channel}"))
        client.rows("notify channel", {"channel": channel})
        ends = time.monotonic() + PROBE_SECONDS
        while (left := ends - time.monotonic()) > 0:
            if any(came.channel == channel for came in self._connection.notifies(timeout=left, stop_after=1)):
                self._connection.execute(text(f"UNLISTEN {channel}"))
                return True
        return False

    def close(self) -> None:
        """From any thread. A waiting thread is woken first: the driver must not lose its socket while it waits."""
        if self._waiting.locked():
            try:
                with socket.socket(fileno=os.dup(self._connection.fileno())) as ours:
                    ours.shutdown(socket.SHUT_RDWR)
            except (OSError, psycopg.Error):
                pass  # it is closed already
        with self._waiting:
            self._connection.close()


class Poll:
    """Takes the place of a listener."""

    def __init__(self, end_offset: Callable[[], str]) -> None:
        self._end_offset = end_offset
        self._closed = Event()

    def wait(self, timeout: float) -> bool:
        """Whether the journal has another end than before."""
        before, ends = self._end_offset(), time.monotonic() + timeout
        while (left := ends - time.monotonic()) > 0:
            if self._closed.wait(min(left, POLL_SECONDS)):
                raise psycopg.OperationalError("the store was closed")
            if self._end_offset() != before:
                return True
        return False

    def close(self) -> None:
        self._closed.set()
