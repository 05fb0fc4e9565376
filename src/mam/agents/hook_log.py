"""The log of a session's hooks: one JSON object a line, one file for each generation, beside the session's manifest.

A hook may run while no worker is active, so it writes to a file that the worker reads later. A session does not survive
a reboot, so the log needs no fsync. A lock orders concurrent hooks. A hook that finds the file full starts a new one; a
reader finishes the old file first.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SESSION_DIR = "MAM_SESSION_DIR"
FULL = 1 << 20
LINE_LIMIT = 1 << 18
"""mam writes no longer lines, so readers skip them."""


def log_path(root: str, generation: str) -> str:
    return os.path.join(root, f"hooks-{generation}.jsonl")


def append(root: str, generation: str, line: bytes) -> None:
    """Append one line, given without its newline. OSError if it cannot be written, or if the file is not the user's
    own."""
    import fcntl

    path = log_path(root, generation)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            mine = os.fstat(descriptor)
            _check(mine)
            if not _is_at(path, mine):
                continue  # another hook started a new file while this one waited
            if mine.st_size >= FULL:
                os.rename(path, f"{path}.1")
                continue
            os.write(descriptor, line + b"\n")
            return
        finally:
            os.close(descriptor)


class HookReader:
    """Reads the lines of one generation across rotated files."""

    def __init__(self, root: str, generation: str) -> None:
        self._path = log_path(root, generation)
        self._open: list[int] = []
        self._rest = b""
        self._begun = False

    def lines(self) -> Iterator[bytes]:
        """The lines since the last call."""
        if not self._begun:
            self._begin(f"{self._path}.1")
            self._begun = True
        while True:
            if not self._open and not self._begin(self._path):
                return
            yield from self._read(self._open[0])
            if not self._has_moved(self._open[0]):
                return
            # A writer holds the lock while it renames the file, so the next read gets its last lines.
            yield from self._read(self._open[0])
            read = self._open.pop()
            self._begin_between(read)
            os.close(read)

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()

    def _begin(self, path: str) -> bool:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            _check(os.fstat(descriptor))
        except OSError:
            os.close(descriptor)
            return False
        self._open.append(descriptor)
        self._rest = b""
        return True

    def _begin_between(self, read: int) -> None:
        """If the log was rotated twice since, read the last but one file first, unless it was just read."""
        before = f"{self._path}.1"
        if not _is_at(before, os.fstat(read)):
            self._begin(before)

    def _read(self, descriptor: int) -> Iterator[bytes]:
        while part := os.read(descriptor, 1 << 16):
            *whole, self._rest = (self._rest + part).split(b"\n")
            yield from (line for line in whole if len(line) <= LINE_LIMIT)
            if len(self._rest) > LINE_LIMIT:
                self._rest = b"\0" * (LINE_LIMIT + 1)  # longer than any line that mam writes

    def _has_moved(self, descriptor: int) -> bool:
        return not _is_at(self._path, os.fstat(descriptor))

    def __del__(self) -> None:
        self.close()


def tail(root: str, generation: str, size: int = FULL) -> list[bytes]:
    """The last lines, up to `size` bytes."""
    reader = HookReader(root, generation)
    try:
        kept: list[bytes] = []
        total = 0
        for line in reader.lines():
            kept.append(line)
            total += len(line)
        while kept and total > size:
            total -= len(kept.pop(0))
        return kept
    finally:
        reader.close()


def remove_old_logs(root: str, generation: str) -> None:
    """Delete the logs of earlier generations."""
    for name in os.listdir(root):
        if name.startswith("hooks-") and not name.startswith(f"hooks-{generation}."):
            try:
                os.unlink(os.path.join(root, name))
            except OSError:
                continue


def _check(found: Any) -> None:
    import stat

    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink > 1:
        raise PermissionError("not a file of this user's own")


def _is_at(path: str, mine: Any) -> bool:
    try:
        there = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)
