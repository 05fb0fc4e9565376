"""Two processes of mam talking: JSON lines over a socket that never makes either of them wait."""

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
    """One end. Whoever holds it polls `fileno()`, for reading always and for writing while `has_more()`."""

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
        """More than once is the same as once."""
        self.is_open = False
        self._connection.close()

    def has_more(self) -> bool:
        """Whether something waits for the other end to read."""
        return self.is_open and bool(self._outbox)

    def send(self, value: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        """As much as the other end takes now; the rest goes with the next `flush`. Descriptors go along with the first
        byte, so that whoever has the value has them too; they are for those who have nothing else under way."""
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
        """Those that came along with what was received, for whoever asks first."""
        found, self._descriptors = self._descriptors, []
        return found

    def flush(self) -> None:
        try:
            while self.has_more():
                self._outbox = self._outbox[self._connection.send(self._outbox) :]
        except BlockingIOError:
            return
        except OSError:
            self._outbox = b""  # nobody reads it any more; what the other end said before it went can still be read

    def receive(self) -> list[dict[str, Any]]:
        """What has come in whole since the last call. `is_open` turns false when the other end is gone."""
        while self.is_open:
            try:
                part, came, _, _ = socket.recv_fds(self._connection, _CHUNK, _MOST_DESCRIPTORS, _CLOSED_ON_EXEC)
            except BlockingIOError:
                break
            except ConnectionResetError:
                continue  # said once, when the other end went without reading; its last words are still there
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
