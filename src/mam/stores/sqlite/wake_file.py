"""What wakes those who wait for news of an SQLite store: a file beside it, of one byte.

It is rung by reading it, which inotify tells as well as a write, and which leaves nothing that a disk has to take: a
write made the sync of the next act longer by a fifth. The log's own file would wake them too early, before others can
see what it holds.
"""

from __future__ import annotations

import os
import time

from mam.util.encoding import close_quietly

CHECK_SECONDS = 1.0
"""How long a bell that somebody removed may wake unheard."""

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class WakeFile:
    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._due = 0.0
        """When to look whether it still hangs there."""

    @property
    def name(self) -> str:
        return os.path.basename(self._path)

    def wake(self) -> None:
        try:
            if time.monotonic() >= self._due:
                self._reopen_if_removed()
            os.pread(self._descriptor, 1, 0)
        except OSError:
            pass  # nobody waits longer than a nap

    def close(self) -> None:
        """It rings again when it is rung."""
        descriptor, self._descriptor, self._due = self._descriptor, -1, 0.0
        if descriptor >= 0:
            close_quietly(descriptor)

    def __del__(self) -> None:
        if hasattr(self, "_due"):
            self.close()

    def _reopen_if_removed(self) -> None:
        """Somebody may have removed it, and nobody hears what is read then."""
        self._due = time.monotonic() + CHECK_SECONDS
        if self._descriptor < 0 or os.fstat(self._descriptor).st_nlink == 0:
            self.close()
            self._descriptor = _open(self._path)
            if os.fstat(self._descriptor).st_size == 0:
                os.pwrite(self._descriptor, b"\n", 0)


def _open(path: str) -> int:
    """Where the system can, not even the time of the last reading is kept; only the owner of a file may ask that."""
    try:
        return os.open(path, _FLAGS | getattr(os, "O_NOATIME", 0), 0o600)
    except PermissionError:
        return os.open(path, _FLAGS, 0o600)
