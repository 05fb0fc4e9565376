"""Check that no process holds a lock for long. A lock ends with its process, so only a live process can hold it."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import time

from mam.doctor.finding import fine, wrong
from mam.errors import StoreUnavailable
from mam.location.stores import FILES
from mam.stores.files.lock import LOCK_FILE, holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding

PATIENCE_SECONDS = 3.0
_LOOK_SECONDS = 0.05
_FLOCK = "hhqqi4x"
"""struct flock: kind, whence, first byte, bytes, process."""
_WRITE_BYTE = 120
"""The byte of SQLite's shared memory that a writer locks, in every version."""


def check(context: Context) -> Iterator[Finding]:
    """Runs first: a check that waited for the lock would find it free afterwards."""
    looked, stuck = [], []
    if context.kind == FILES and context.directory is not None:
        looked.append("the store's")
        stuck += _stuck(os.path.join(context.directory, LOCK_FILE), _flock_holder)
        if stuck and context.not_opened is None:
            problem = "a process holds its lock, so mam does not check it; try again later"
            context.not_opened = StoreUnavailable(store=context.directory, problem=problem)
    if context.database is not None and sys.platform == "linux" and struct.calcsize("P") == 8:
        looked.append("the store's")
        stuck += _stuck(f"{context.database}-shm", _writer)
    if context.located is not None:
        looked.append("the audit log's")
        stuck += _stuck(os.path.join(context.located.logs_dir, LOCK_FILE), _flock_holder)
    yield from stuck
    if looked and not stuck:
        yield fine(f"no process holds {' or '.join(looked)} lock")


def _stuck(path: str, held_by: Callable[[int], str | None]) -> list[Finding]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return []  # no lock file; another check reports a missing store
    except OSError as error:
        return [wrong(f"{path}: {error.strerror}", "no process can take the lock, so nothing can be written")]
    try:
        who = _held_by_one(descriptor, held_by)
    finally:
        os.close(descriptor)
    if who is None:
        return []
    pid = who.rpartition(" ")[2]
    return [
        wrong(
            f"{path} has been held{who} for {PATIENCE_SECONDS:g} s",
            "other processes wait for it and give up after lock_wait_seconds",
            f"ps -fp {pid}" if pid.isdigit() else f"fuser -v {path}",
        )
    ]


def _held_by_one(descriptor: int, held_by: Callable[[int], str | None]) -> str | None:
    """The process that held it all the time; None if it was free or changed its holder."""
    ends, holders = time.monotonic() + PATIENCE_SECONDS, set()
    while time.monotonic() < ends:
        who = held_by(descriptor)
        if who is None:
            return None
        holders.add(who)
        if len(holders) > 1:
            return None
        time.sleep(_LOOK_SECONDS)
    return holders.pop() if holders else None


def _flock_holder(descriptor: int) -> str | None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return holder(descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return None


def _writer(descriptor: int) -> str | None:
    """Queries the lock without taking it, because the database may belong to another program. The store is not open
    yet: closing this descriptor would release its locks."""
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _WRITE_BYTE, 1, 0)
    kind, *_range, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    if kind == fcntl.F_UNLCK:
        return None
    return f" by process {pid}" if pid > 0 else ""
