"""Wakes the processes that wait for changes of an SQLite store, by a file of one byte beside it.

A writer reads the file after each commit; waiting processes watch for reads with inotify. A write instead of the read
would make the sync of the next act a fifth longer. The database's own log changes too early: before the commit.
"""

from __future__ import annotations

import os
import time

from mam.util.encoding import close_quietly

CHECK_SECONDS = 1.0
"""How long reads of a removed file may go unnoticed."""

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class WakeFile:
    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._due = 0.0
        """When to check that the file is still there."""

    @property
    def name(self) -> str:
        return os.path.basename(self._path)

    def wake(self) -> None:
        try:
            if time.monotonic() >= self._due:
                self._reopen_if_removed()
            os.pread(self._descriptor, 1, 0)
        except OSError:
            pass  # waiting processes also poll

    def close(self) -> None:
        """The next `wake` opens it again."""
        descriptor, self._descriptor, self._due = self._descriptor, -1, 0.0
        if descriptor >= 0:
            close_quietly(descriptor)

    def __del__(self) -> None:
        if hasattr(self, "_due"):
            self.close()

    def _reopen_if_removed(self) -> None:
        """Reads of a removed file wake no one."""
        self._due = time.monotonic() + CHECK_SECONDS
        if self._descriptor < 0 or os.fstat(self._descriptor).st_nlink == 0:
            self.close()
            self._descriptor = _open(self._path)
            if os.fstat(self._descriptor).st_size == 0:
                os.pwrite(self._descriptor, b"\n", 0)


def _open(path: str) -> int:
    """Avoids updates of the access time where that is allowed: only the owner may use O_NOATIME."""
    try:
        return os.open(path, _FLAGS | getattr(os, "O_NOATIME", 0), 0o600)
    except PermissionError:
        return os.open(path, _FLAGS, 0o600)
