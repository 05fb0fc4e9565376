"""Waits for notifications of the server, for one thread."""

from __future__ import annotations

import os
import socket
from _thread import allocate_lock

import psycopg

from mam.stores.postgres.connection import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.postgres.connection import Connection


class Listener:
    def __init__(self, connection: Connection, channel: str) -> None:
        self._connection = connection
        self._waiting = allocate_lock()
        connection.execute(text(f"LISTEN {channel}"))

    def wait(self, timeout: float) -> bool:
        """Whether a notification came; psycopg.Error when the connection was lost or another thread closed this."""
        with self._waiting:
            return any(True for _ in self._connection.notifies(timeout=timeout, stop_after=1))

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
