"""What wakes those who wait for news of an SQLite store: a file beside it.

It is rung by reading it, which inotify tells as well as a write, and which leaves nothing that a disk has to take: a
write made the sync of the next act longer by a fifth. The log's own file would wake them too early, before others can
see what it holds. In the file stands until when somebody listens; whoever rings often has that in memory, and rings for
nobody no more.
"""

from __future__ import annotations

import os
import time

from mam.writing import close_quietly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

HANGS_SECONDS = 1.0
"""How long a bell that somebody removed may ring unheard."""

_LISTENS_SECONDS = 60.0
"""For how much longer than asked somebody is taken to listen."""

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_SIZE = 8


class Bell:
    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._due = 0.0
        """When to look whether it still hangs there."""
        self._memory: mmap | None = None
        self._until: memoryview[float] | None = None
        """When the last of those who listen have stopped, by the clock that all processes share."""
        self._promised = 0.0

    @property
    def name(self) -> str:
        return os.path.basename(self._path)

    def ring(self) -> None:
        try:
            now = time.monotonic()
            if now >= self._due:
                self._hang(now)
            if self._until is None or self._until[0] > now:
                os.pread(self._descriptor, 1, 0)
        except OSError:
            pass  # nobody waits longer than a nap

    def listen(self, seconds: float) -> None:
        """For so long. Who then looks whether there is news hears of all that comes later."""
        now = time.monotonic()
        try:
            if now >= self._due:
                self._hang(now)
            if self._promised < now + seconds:
                self._promise(now + seconds + _LISTENS_SECONDS)
        except OSError:
            pass

    def muffle(self) -> None:
        """It rings again when it is rung."""
        descriptor, self._descriptor, self._due, self._promised = self._descriptor, -1, 0.0, 0.0
        if self._until is not None and self._memory is not None:
            self._until.release()
            self._memory.close()
            self._until = self._memory = None
        if descriptor >= 0:
            close_quietly(descriptor)

    def __del__(self) -> None:
        if hasattr(self, "_promised"):
            self.muffle()

    def _hang(self, now: float) -> None:
        """Somebody may have removed it, and nobody hears what is read then."""
        is_removed = self._descriptor >= 0 and os.fstat(self._descriptor).st_nlink == 0
        if self._descriptor < 0 or is_removed:
            self.muffle()
            self._descriptor = _opened(self._path)
            if os.fstat(self._descriptor).st_size < _SIZE:
                self._promise(now + _LISTENS_SECONDS if is_removed else 0.0)  # to others, who do not know of it yet
        elif self._until is None:
            self._remember()
        self._due = now + HANGS_SECONDS

    def _promise(self, until: float) -> None:
        from struct import pack

        os.pwrite(self._descriptor, pack("d", until), 0)
        self._promised = until

    def _remember(self) -> None:
        """Only who is still there after a second: a command that somebody typed would wait for the import."""
        from mmap import ACCESS_READ, mmap

        self._memory = mmap(self._descriptor, _SIZE, access=ACCESS_READ)
        self._until = memoryview(self._memory).cast("d")


def _opened(path: str) -> int:
    """Where the system can, not even the time of the last reading is kept; only the owner of a file may ask that."""
    try:
        return os.open(path, _FLAGS | getattr(os, "O_NOATIME", 0), 0o600)
    except PermissionError:
        return os.open(path, _FLAGS, 0o600)
