"""JSON lines between two processes of mam, over a socket that never blocks either of them."""

from __future__ import annotations

import json
import os
import socket

from mam.util.encoding import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_CHUNK = 1 << 16
_MOST_DESCRIPTORS = 3
_CLOSED_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Channel:
    """One end. The holder polls `fileno()`: for reading always, for writing while `has_more()`."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._inbox = bytearray()
        self._outbox = b""
        self._descriptors: list[int] = []
        self.is_open = True

    def fileno(self) -> int:
        """-1 when it is closed."""
        return self._connection.fileno()

    def close(self) -> None:
        """Idempotent."""
        self.is_open = False
        self._connection.close()

    def has_more(self) -> bool:
        """Whether there is output that the other end has not read."""
        return self.is_open and bool(self._outbox)

    def send(self, value: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Sends as much as the other end accepts now; `flush` sends the rest. Descriptors travel with the first byte,
        so that the receiver of the value has them too. Only for a sender that has nothing else pending."""
        self._outbox += to_bytes(value) + b"\n"
        if descriptors:
            self._send_with(descriptors)
        self.flush()

    def _send_with(self, descriptors: Sequence[int]) -> None:
        try:
            self._outbox = self._outbox[socket.send_fds(self._connection, [self._outbox], descriptors) :]
        except ConnectionError:
            self._outbox = b""  # as in `flush`

    def descriptors(self) -> list[int]:
        """The descriptors received so far; each is returned once."""
        found, self._descriptors = self._descriptors, []
        return found

    def flush(self) -> None:
        try:
            while self.has_more():
                self._outbox = self._outbox[self._connection.send(self._outbox) :]
        except BlockingIOError:
            return
        except OSError:
            self._outbox = b""  # the other end is gone; what it sent before can still be read

    def receive(self) -> list[dict[str, Any]]:
        """The complete lines since the last call. `is_open` becomes False when the other end is gone."""
        while self.is_open:
            try:
                part, came, _, _ = socket.recv_fds(self._connection, _CHUNK, _MOST_DESCRIPTORS, _CLOSED_ON_EXEC)
            except BlockingIOError:
                break
            except ConnectionResetError:
                continue  # reported once, when the other end closed without reading; its last lines are still there
            except OSError:
                part, came = b"", []
            for descriptor in came:
                os.set_inheritable(descriptor, False)  # not every system has the flag
            self._descriptors += came
            self.is_open = bool(part)
            self._inbox += part
        *lines, rest = self._inbox.split(b"\n")
        self._inbox = rest
        return [json.loads(line) for line in lines]
