"""Follows the journal in a thread of its own and wakes the thread that serves."""

from __future__ import annotations

import os
from threading import Event, Lock, Thread

from mam.errors import MamError
from mam.registry import LONGEST_SLEEP_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.registry import Registry

AWAY_SECONDS = 1.0


class WakePipe:
    """Changed jobs, from one thread to another that polls `wakes`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._changed: set[str] = set()
        self.wakes, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def wake(self, changed: set[str]) -> None:
        with self._lock:
            self._changed |= changed
            try:
                os.write(self._waker, b".")
            except BlockingIOError:
                pass  # it is readable already

    def take(self) -> set[str]:
        with self._lock:
            changed, self._changed = self._changed, set()
            try:
                os.read(self.wakes, 4096)
            except BlockingIOError:
                pass
        return changed


class Follower:
    """`wakes` is readable when jobs have changed, or when a lease or a deadline may have ended; `take` returns them."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._stopped = Event()
        self._pipe = WakePipe()
        self.wakes = self._pipe.wakes
        self._thread = Thread(target=self._follow, name="mam-mcp-follower", daemon=True)

    def start(self) -> None:
        """From the present end of the journal: what the caller reads afterwards is not older than that."""
        self._offset = self._registry.store.end_offset()
        self._thread.start()

    def watch(self, jobs: frozenset[str]) -> None:
        """A journal tells about every job."""

    def stop(self) -> None:
        """Does not wait for the thread, which may sleep; the process ends."""
        self._stopped.set()

    def take(self) -> set[str]:
        return self._pipe.take()

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                self._registry.wait_for_change(self._offset, LONGEST_SLEEP_SECONDS)
                self._pipe.wake(self._read())
            except (MamError, OSError):  # the store is away; requests report it
                self._stopped.wait(AWAY_SECONDS)

    def _read(self) -> set[str]:
        changed = set()
        for entry in self._registry.store.entries(self._offset):
            self._offset = entry.offset
            changed.add(entry.job_id)
        return changed
