"""The directory for the sockets of one worker: private, with a short name that cannot be guessed."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time

from mam.errors import StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PATH_LIMIT = 103
"""The path length that every system accepts for a socket: 107 on Linux, 103 on macOS."""

_PREFIX = "mam-door-"
_TOKEN_BYTES = 8
_LEFTOVER_SECONDS = 60.0
"""Younger directories are kept: their owner may not have locked them yet."""


class SocketDir:
    """The directory is locked for as long as its worker lives, which tells it from those that killed workers left."""

    def __init__(self, base: str | None = None) -> None:
        bases = [base] if base is not None else list(_bases())
        for candidate in bases:
            if _fits(candidate) and is_private(candidate, shared=base is None):
                break
        else:
            problem = f"no directory of mine with a short name for a worker's sockets (tried {', '.join(bases)})"
            raise StoreUnavailable(store="MAM_SOCKET", problem=problem)
        _sweep(candidate)
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=candidate)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def new_address(self) -> str:
        return os.path.join(self.path, os.urandom(_TOKEN_BYTES).hex())

    def close(self) -> None:
        """Idempotent."""
        if self._lock >= 0:
            _remove(self.path)
            os.close(self._lock)
            self._lock = -1


def is_private(directory: str, *, shared: bool = False) -> bool:
    """Whether the directory belongs to this user alone or, with `shared`, whether others cannot remove its entries."""
    try:
        found = os.lstat(directory)
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        return False
    if found.st_uid == os.geteuid() and not found.st_mode & 0o077:
        return True
    writable = found.st_mode & 0o022
    return shared and found.st_uid in (0, os.geteuid()) and (not writable or bool(found.st_mode & stat.S_ISVTX))


def _bases() -> Iterator[str]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isabs(runtime) and is_private(runtime):
        directory = os.path.join(runtime, "mam")
        try:
            os.mkdir(directory, 0o700)
        except OSError:
            pass  # it exists, or cannot be created; the caller checks it
        if is_private(directory):
            yield directory
    # Not `tempfile.gettempdir()`, which writes a test file: a killed process would leave it behind.
    for shared in (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp"):  # noqa: S108 - a private directory is made in it
        if os.path.isabs(shared) and os.access(shared, os.W_OK | os.X_OK):
            yield os.path.realpath(shared)


def _fits(base: str) -> bool:
    longest = os.path.join(base, _PREFIX + "x" * 8, "x" * 2 * _TOKEN_BYTES)
    return len(os.fsencode(longest)) <= PATH_LIMIT


def _sweep(base: str) -> None:
    """Removes what killed workers left: a directory whose lock is free has no worker."""
    try:
        names = [name for name in os.listdir(base) if name.startswith(_PREFIX)]
    except OSError:
        return
    for name in names:
        directory = os.path.join(base, name)
        if not is_private(directory):
            continue
        try:
            _sweep_one(directory)
        except OSError:
            continue


def _sweep_one(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if time.time() - os.fstat(descriptor).st_mtime < _LEFTOVER_SECONDS:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(directory)
    finally:
        os.close(descriptor)


def _remove(directory: str) -> None:
    """Keeps a directory that contains anything but sockets."""
    try:
        paths = [os.path.join(directory, name) for name in os.listdir(directory)]
        if all(stat.S_ISSOCK(os.lstat(path).st_mode) for path in paths):
            for path in paths:
                os.unlink(path)
            os.rmdir(directory)
    except OSError:
        return
