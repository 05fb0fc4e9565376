"""Copies the agent's output from its pipes to the log, the tail and, on request, the worker. Never blocks."""

from __future__ import annotations

import os
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.work.output_log import OutputLog

_CHUNK = 1 << 16
_DRAIN_LIMIT = 8 << 20  # more than any pipe holds: a process outside of the tree is still writing
TAIL = 64 << 10
_TEE_BACKLOG = 1 << 20


class TailBuffer:
    """The last bytes of a stream, kept in the parts in which they came."""

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque()
        self._size = 0

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        while self._size - len(self._parts[0]) >= TAIL:
            self._size -= len(self._parts.popleft())

    def text(self) -> str:
        """Replaces invalid UTF-8, and drops a character that the limit cuts in two."""
        whole = b"".join(self._parts)
        kept = whole[-TAIL:]
        if len(kept) < len(whole):
            kept = kept[_halved(kept) :]
        return kept.decode("utf-8", "replace")


def _halved(text: bytes) -> int:
    """How many leading bytes belong to a character that began earlier."""
    return next((count for count in range(min(4, len(text))) if text[count] & 0xC0 != 0x80), 0)


class Tee:
    """The agent's stdout for a worker that may be slow or may have stopped reading.

    A slow worker slows the agent down, since no message may be lost. A worker that reads nothing for `patience` seconds
    is cut off: the log continues, and the byte count shows the worker that bytes are missing.
    """

    def __init__(self, descriptor: int, patience: float) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._poll_timeout = patience
        self._backlog: deque[bytes] = deque()
        self._size = 0
        self._moved_at = 0.0
        self._is_last = False

    def fileno(self) -> int:
        return self._descriptor

    def is_full(self) -> bool:
        return self._size > _TEE_BACKLOG

    def waits_until(self) -> float | None:
        """When the patience ends; None if nothing is waiting."""
        return self._moved_at + self._poll_timeout if self._backlog else None

    def offer(self, part: bytes) -> None:
        if self._descriptor < 0:
            return
        if not self._backlog:
            self._moved_at = time.monotonic()
        self._backlog.append(part)
        self._size += len(part)
        self.flush()

    def flush(self) -> None:
        try:
            while self._backlog:
                taken = os.write(self._descriptor, self._backlog[0])
                self._size -= taken
                self._moved_at = time.monotonic()
                if rest := self._backlog[0][taken:]:
                    self._backlog[0] = rest
                else:
                    self._backlog.popleft()
            if self._is_last:
                self.close()
        except BlockingIOError:
            if time.monotonic() > self._moved_at + self._poll_timeout:
                self.close()
        except OSError:
            self.close()  # the worker closed its end

    def finish(self) -> None:
        """No more data will come. The worker reads to the end, so the pipe must close as soon as everything is read."""
        self._is_last = True
        self.flush()

    def close(self) -> None:
        self._backlog.clear()
        self._size = 0
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Pump:
    """One of the agent's two output streams."""

    def __init__(self, descriptor: int, log: OutputLog, tee: Tee | None = None) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._log = log
        self._tee = tee
        self.tail = TailBuffer()
        self.count = 0

    def fileno(self) -> int:
        return self._descriptor

    def is_open(self) -> bool:
        return self._descriptor >= 0

    def wants_more(self) -> bool:
        return self.is_open() and not (self._tee is not None and self._tee.is_full())

    def move(self) -> int:
        """Copies one part. Returns 0 if there is nothing now; at the end of the stream it also closes."""
        try:
            part = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            part = b""
        if not part:
            self.close()
            return 0
        self.count += len(part)
        self.tail.add(part)
        self._log.write(part)
        if self._tee is not None:
            self._tee.offer(part)
        return len(part)

    def drain(self) -> None:
        """Copies what is in the pipe after the tree has ended, and no more: another process may hold the pipe open for
        ever."""
        moved = 0
        while self.is_open() and moved < _DRAIN_LIMIT and (count := self.move()):
            moved += count
        self.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            if self._tee is not None:
                self._tee.finish()
