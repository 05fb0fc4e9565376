"""The lock of the audit log: one writer at a time.

The log must not delay acts, so the wait is short; after a timeout the next act copies the lines.
"""

from __future__ import annotations

import fcntl
import os
import time

from mam.util.gitignore import ignore_in_git

LOCK_FILE = ".lock"

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class AuditLogLock:
    """`with AuditLogLock(directory, seconds) as root:` opens the directory and locks it.

    Raises TimeoutError when another process holds the lock for longer.
    """

    def __init__(self, directory: str, wait_seconds: float) -> None:
        self._directory = directory
        self._wait_seconds = wait_seconds
        self._root = self._lock = -1

    def __enter__(self) -> int:
        ends = time.monotonic() + self._wait_seconds
        while True:
            self._root = _open_directory(self._directory)
            try:
                self._lock = os.open(
                    LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=self._root
                )
                self._wait_until(ends)
                # The log may have been removed during the wait; then this file locks nothing.
                if os.fstat(self._lock).st_nlink:
                    return self._root
            except BaseException:
                self.__exit__()
                raise
            self.__exit__()

    def __exit__(self, *_exception: object) -> None:
        if self._lock >= 0:
            # Unlocked explicitly: a child forked meanwhile has a copy of the descriptor.
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
        os.close(self._root)
        self._root = self._lock = -1

    def _wait_until(self, ends: float) -> None:
        """Polls, since a blocking flock cannot be bounded without signals, which belong to the main program."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= ends:
                    raise TimeoutError(f"another process has held the lock of {self._directory} for too long") from None
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


def _open_directory(path: str) -> int:
    try:
        return os.open(path, _DIRECTORY)
    except FileNotFoundError:
        os.makedirs(path, mode=0o700, exist_ok=True)
        ignore_in_git(path)
        return os.open(path, _DIRECTORY)
