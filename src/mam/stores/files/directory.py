"""The directory of a registry, watched by its own modification time.

Every change of mam's own is followed by a time that mam sets itself, to the nanosecond. A directory that shows another
time has been changed by somebody else since, even within the same tick of the file system's clock.
"""

from __future__ import annotations

import os
import stat
import time

from mam.errors import StoreMissing, StoreUnavailable
from mam.writing import close_quietly

UNKNOWN = -1
"""A time that no directory shows: the next look at it will be a thorough one."""


class Directory:
    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = -1
        self.descriptor, self._identity = _open(path)
        self.owner = os.fstat(self.descriptor).st_uid
        """The user, or another one whose store the user has approved."""
        self._expected = UNKNOWN
        self._disturbed = False

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            close_quietly(descriptor)

    __del__ = close  # a store that is simply dropped keeps nothing open

    def is_still(self) -> bool:
        """Whether the path still leads to the directory that was opened; it may have been removed and made anew."""
        return self.shown_ns() is not None

    def shown_ns(self) -> int | None:
        """The time that the directory of this path shows now; None when it is not the one that was opened."""
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            return None
        is_still = self.descriptor >= 0 and (there.st_dev, there.st_ino) == self._identity
        return there.st_mtime_ns if is_still else None

    def modified_ns(self) -> int:
        return os.fstat(self.descriptor).st_mtime_ns

    def expect(self, modified_ns: int) -> None:
        """What the directory looks like before this act's own changes."""
        self._expected = modified_ns
        self._disturbed = False

    def look_again(self) -> None:
        """Not everything was taken in: the next look is a thorough one, whatever this act still changes."""
        self._disturbed = True

    def stamp(self) -> None:
        """From now on any change that is not mam's own shows, whatever happened before."""
        now = time.time_ns()
        os.utime(self.descriptor, ns=(now, now))
        self.expect(self.modified_ns())  # what the file system could keep of it

    def __enter__(self) -> None:
        """`with directory:` around each change of mam's own, as tightly as can be."""
        self._disturbed = self._disturbed or self.modified_ns() != self._expected

    def __exit__(self, *_exception: object) -> None:
        disturbed = self._disturbed
        self.stamp()
        self._disturbed = disturbed

    def synced(self) -> int:
        """Makes all renames durable; returns the time to expect next, UNKNOWN if somebody else was here too."""
        os.fsync(self.descriptor)
        return self.expected()

    def expected(self) -> int:
        return UNKNOWN if self._disturbed or self.modified_ns() != self._expected else self._expected


def _open(path: str) -> tuple[int, tuple[int, int]]:
    """The descriptor, and which directory it is."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise StoreMissing(store=path) from None
    except OSError as error:
        raise StoreUnavailable(store=path, problem=error.strerror) from None
    found = os.fstat(descriptor)
    problem = None
    if found.st_uid != os.geteuid() and not _is_approved(path):
        problem = f"belongs to another user (uid {found.st_uid}), whose files mam does not touch"
    elif found.st_mode & stat.S_IWOTH:
        problem = "can be written by everybody; `chmod 700` it first"
    if problem:
        os.close(descriptor)
        raise StoreUnavailable(store=path, problem=problem)
    return descriptor, (found.st_dev, found.st_ino)


def _is_approved(path: str) -> bool:
    from mam.ownership import owned_by_others_is_fine

    return owned_by_others_is_fine(path)
