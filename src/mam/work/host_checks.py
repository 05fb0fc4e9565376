"""Checks whether an error means that the worker's machine cannot run a job: disk space, descriptors or memory are
short.

The job is not at fault. A job that has not started goes back unchanged, for a worker that can run it, and this worker
backs off before it claims again. Otherwise it would claim and return one job after the other.
"""

from __future__ import annotations

import errno
import os
import time
from threading import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0

_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_DISK = _ROOM | {errno.EROFS, errno.EIO}


def is_machine_error(error: OSError | MemoryError, work_directory: str | None = None) -> bool:
    """Whether the machine lacks something. With `work_directory`, a disk error counts only inside that directory:
    elsewhere it concerns one job, and the others need not wait."""
    if isinstance(error, MemoryError) or error.errno in _RESOURCES:
        return True
    return error.errno in _DISK and (work_directory is None or not _is_outside(error.filename, work_directory))


def is_resource_errno(number: int | None) -> bool:
    return number in _RESOURCES


def reports_shortage(words: str) -> bool:
    """The same for the error message of a program. A read-only disk does not count, since waiting does not help."""
    return any(os.strerror(number) in words for number in _RESOURCES | _ROOM)


def describe_error(error: OSError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return os.strerror(errno.ENOMEM)
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}"


def _is_outside(path: object, work_directory: str) -> bool:
    return (
        isinstance(path, str) and os.path.isabs(path) and os.path.commonpath((path, work_directory)) != work_directory
    )


class Backoff:
    """The pause of one worker between claims. It doubles each time until one of its jobs starts. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._seconds = 0.0
        self._ends = 0.0

    def start(self) -> float:
        """Returns the seconds until it ends. Jobs that go back together start one pause, not several."""
        with self._lock:
            if not self.remaining():
                self._seconds = min(max(self._seconds * 2, FIRST_SECONDS), LONGEST_SECONDS)
                self._ends = self._clock() + self._seconds
            return self.remaining()

    def reset(self) -> None:
        with self._lock:
            self._seconds = self._ends = 0.0

    def remaining(self) -> float:
        return max(0.0, self._ends - self._clock())
