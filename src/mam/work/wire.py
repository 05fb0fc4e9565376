"""Two processes of mam talking: JSON lines over a descriptor that never makes either of them wait."""

from __future__ import annotations

import json
import os

from mam.writing import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CHUNK = 1 << 16


class Wire:
    """One end. Whoever holds it polls `fileno()`, for reading always and for writing while `has_more()`."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._inbox = bytearray()
        self._outbox = b""
        self.is_open = True

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        """More than once is the same as once."""
        self.is_open = False
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def has_more(self) -> bool:
        """Whether something waits for the other end to read."""
        return self.is_open and bool(self._outbox)

    def send(self, value: dict[str, Any]) -> None:
        """As much as the other end takes now; the rest goes with the next `flush`."""
        self._outbox += to_bytes(value) + b"\n"
        self.flush()

    def flush(self) -> None:
        try:
            while self.has_more():
                self._outbox = self._outbox[os.write(self._descriptor, self._outbox) :]
        except BlockingIOError:
            return
        except OSError:
            self._outbox = b""  # nobody reads it any more; what the other end said before it went can still be read

    def receive(self) -> list[dict[str, Any]]:
        """What has come in whole since the last call. `is_open` turns false when the other end is gone."""
        while self.is_open:
            try:
                part = os.read(self._descriptor, _CHUNK)
            except BlockingIOError:
                break
            except ConnectionResetError:
                continue  # said once, when the other end went without reading; its last words are still there
            except OSError:
                part = b""
            self.is_open = bool(part)
            self._inbox += part
        *lines, rest = self._inbox.split(b"\n")
        self._inbox = rest
        return [json.loads(line) for line in lines]
