"""Decide when a dropped file is complete: unchanged for a while, and not open for writing.

A file that arrives by rename (mv, rsync, editors) is complete when it appears. A file that is written in place (cp,
scp, a redirect) has a new mtime while it grows. For a writer that pauses longer, mam asks the kernel for a read lease,
which it grants only if no process has the file open for writing.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time

from mam.inbox.names import INBOX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.inbox.tree import PromptFile, Tree

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_AGAIN_SECONDS = 0.25
"""When to check again a file that is open for writing."""


class Debouncer:
    def __init__(self, tree: Tree, seconds: float) -> None:
        self._tree = tree
        self._seconds = seconds
        self._first_seen: dict[str, tuple[PromptFile, float]] = {}
        self.next_in: float | None = None
        """Seconds until another file may be complete."""

    def settled(self, files: Iterable[PromptFile]) -> list[PromptFile]:
        """The files that are complete now."""
        now, wall_ns = time.monotonic(), time.time_ns()
        ready, first, waits = [], {}, []
        for file in files:
            before = self._first_seen.get(file.rel)
            since = before[1] if before is not None and before[0] == file else now
            first[file.rel] = (file, since)
            age = (wall_ns - file.modified_ns) / 1e9
            # An mtime in the future is useless; then mam counts since it first saw the file unchanged.
            left = min(self._seconds - age if age >= 0 else self._seconds, since + self._seconds - now)
            if left > 0:
                waits.append(left)
            elif file.is_file and self._is_open_for_writing(file):
                waits.append(_AGAIN_SECONDS)
            else:
                ready.append(file)
        self._first_seen = first
        self.next_in = min(waits) if waits else None
        return ready

    def _is_open_for_writing(self, file: PromptFile) -> bool:
        """Whether a process has the file open for writing; False where the system cannot tell."""
        if not hasattr(fcntl, "F_SETLEASE"):
            return False
        try:
            with self._tree.folder(INBOX, os.path.dirname(file.rel)) as folder:
                descriptor = os.open(os.path.basename(file.rel), _READ, dir_fd=folder)
        except OSError:
            return False
        try:
            # A process that opens the file now waits a moment. The kernel signals that to mam by SIGURG, which has no
            # effect.
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return False
