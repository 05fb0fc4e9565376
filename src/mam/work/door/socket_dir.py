"""Where the sockets of one worker are: a directory that nobody else can enter, with a short name nobody can guess."""

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
"""Bytes that every system takes for the name of a socket: 107 on Linux, 103 on macOS."""

_PREFIX = "mam-door-"
_TOKEN_BYTES = 8
_LEFTOVER_SECONDS = 60.0
"""Younger directories are left alone: their owner may not have locked them yet."""


class SocketDir:
    """Its directory is locked for as long as its worker lives, so that what a killed one left can be told from it."""

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
        """More than once is the same as once."""
        if self._lock >= 0:
            _remove(self.path)
            os.close(self._lock)
            self._lock = -1


def is_private(directory: str, *, shared: bool = False) -> bool:
    """Whether it is a directory of mine that only I can enter, or, if that will do, one where nobody can take away
    what another has made."""
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
            pass  # it is there, or cannot be; who asks looks at it
        if is_private(directory):
            yield directory
    # Not `tempfile.gettempdir()`, which tries a file in each place first: who is killed meanwhile leaves that behind.
    for shared in (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp"):  # noqa: S108 - a private directory is made in it
        if os.path.isabs(shared) and os.access(shared, os.W_OK | os.X_OK):
            yield os.path.realpath(shared)


def _fits(base: str) -> bool:
    longest = os.path.join(base, _PREFIX + "x" * 8, "x" * 2 * _TOKEN_BYTES)
    return len(os.fsencode(longest)) <= PATH_LIMIT


def _sweep(base: str) -> None:
    """Takes away what killed workers left; whose lock can be had has no worker any more."""
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
    """A directory that holds anything but sockets is not what it looks like, and stays."""
    try:
        paths = [os.path.join(directory, name) for name in os.listdir(directory)]
        if all(stat.S_ISSOCK(os.lstat(path).st_mode) for path in paths):
            for path in paths:
                os.unlink(path)
            os.rmdir(directory)
    except OSError:
        return
