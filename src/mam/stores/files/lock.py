"""The registry's one lock: an exclusive flock on `.lock`, as the old scripts take it.

The kernel releases it when its holder dies. Children do not inherit it, and mam never deletes the file. A process that
finds another inode at `.lock` after its wait starts again, so that there are never two holders on two inodes.

The file holds the last entry of the journal that was durable (`note_end`). A database that ends before it went back.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from _thread import get_ident

from mam.errors import StoreMissing, StoreReadOnly, StoreUnavailable
from mam.util.encoding import close_quietly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOCK_FILE = ".lock"
WAIT_SECONDS = 10.0

_PAUSE, _UNLUCKY_PAUSE = 0.002, 0.0002
"""An act takes a millisecond or two, so a longer pause wastes time. A process that has waited long polls faster."""

_UNLUCKY_SECONDS, _SAMPLE_SECONDS = 0.5, 0.2

_NOTE_LIMIT, _NUMBER_LENGTH = 256, 21

_held: dict[tuple[str, int], list[int]] = {}
"""(directory, thread) -> [descriptor, depth]: the thread that holds the lock may take it again."""


class registry_lock:  # noqa: N801 - the seed's name, used as a function
    """`with registry_lock(directory):` no other process writes the registry meanwhile."""

    def __init__(self, directory: str, wait_seconds: float = WAIT_SECONDS, *, is_real: bool = False) -> None:
        """`is_real`: the path is resolved already, which saves a lookup at each act."""
        self._directory = directory if is_real else os.path.realpath(directory)
        self._wait_seconds = wait_seconds

    def __enter__(self) -> None:
        key = (self._directory, get_ident())
        held = _held.get(key)
        if held is None:
            _held[key] = [_acquire(self._directory, self._wait_seconds), 1]
        else:
            held[1] += 1

    def __exit__(self, *_exception: object) -> None:
        key = (self._directory, get_ident())
        held = _held.get(key)
        if held is None:
            return  # a child forked inside the lock does not own it
        if held[1] > 1:
            held[1] -= 1
            return
        # Unlocked explicitly: a child forked meanwhile may have a copy of the descriptor.
        fcntl.flock(held[0], fcntl.LOCK_UN)
        del _held[key]
        close_quietly(held[0])


def note_end(directory: str, epoch: str, number: int) -> None:
    """After a commit, by the thread that holds the lock: writes the last entry of the journal. It needs no sync, since
    a power cut may only leave an earlier entry. The text has a fixed length, so it is written over the earlier one."""
    os.pwrite(_held[(directory, get_ident())][0], b"%s %020d\n" % (epoch.encode(), number), 0)


def noted_end(directory: str) -> tuple[str, int] | None:
    """The epoch and the number that the last act noted, for the thread that holds the lock. None if there is no such
    note: the store is new, or of a mam that wrote none."""
    epoch, _, number = (
        os.pread(_held[(directory, get_ident())][0], _NOTE_LIMIT, 0).decode("ascii", "replace").partition(" ")
    )
    is_note = len(number) == _NUMBER_LENGTH and number[:-1].isdecimal() and number.isascii()
    return (epoch, int(number)) if is_note else None


def _acquire(directory: str, wait_seconds: float) -> int:
    path = os.path.join(directory, LOCK_FILE)
    return lock_file(path, lambda: _open(path, directory), lambda lock: _wait_for(lock, wait_seconds, directory))


def lock_file(path: str, open_file: Callable[[], int], wait_for: Callable[[int], object]) -> int:
    """Opens and locks the file at `path`, again if another process has replaced it during the wait."""
    while True:
        descriptor = open_file()
        try:
            wait_for(descriptor)
            if _is_still(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open(path: str, directory: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise StoreReadOnly(store=directory, problem=error.strerror) from None
        if error.errno == errno.ENOENT:
            raise StoreMissing(store=directory) from None
        why = "its .lock is a link" if error.errno == errno.ELOOP else f"its .lock: {error.strerror}"
        raise StoreUnavailable(store=directory, problem=why) from None


def _wait_for(descriptor: int, wait_seconds: float, directory: str) -> None:
    """Polls, since a blocking flock cannot be bounded without signals, which belong to the main program.

    It gives up only when one process holds the lock all the time, not when several processes take turns.
    """
    began = sampled = time.monotonic()
    holders: set[str] = set()
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        except OSError as error:
            raise StoreUnavailable(store=directory, problem=f"cannot be locked: {error.strerror}") from None
        now = time.monotonic()
        if now - sampled >= _SAMPLE_SECONDS or not holders:
            holders.add(holder(descriptor))
            sampled = now
        if now - began >= wait_seconds:
            if len(holders) == 1:
                who = holders.pop()
                raise StoreUnavailable(
                    store=directory, problem=f"its lock has been held for {wait_seconds:g} s{who}; try again later"
                )
            began, holders = now, set()
        time.sleep(_PAUSE if now - began < _UNLUCKY_SECONDS else _UNLUCKY_PAUSE)


def _is_still(path: str, descriptor: int) -> bool:
    """Whether the locked file is still the one that other processes open."""
    mine = os.fstat(descriptor)
    try:
        theirs = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (mine.st_dev, mine.st_ino) == (theirs.st_dev, theirs.st_ino)


def holder(descriptor: int) -> str:
    """` by process N`, where /proc/locks exists."""
    found = os.fstat(descriptor)
    wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii") as file:
            for line in file:
                fields = line.split()
                if wanted in fields and "FLOCK" in fields and "->" not in fields:
                    return f" by process {fields[fields.index(wanted) - 1]}"
    except OSError:
        pass
    return ""


def _forget_in_child() -> None:
    """A forked child has copies of the descriptors; if it kept them, the lock would outlive its holder."""
    for descriptor, _depth in _held.values():
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)
