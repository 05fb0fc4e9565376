"""A thread that follows the journal for `mam watch`.

It also sweeps jobs that are due, so that an expired lease shows even if no worker claims.
"""

from __future__ import annotations

import os
import time
from queue import SimpleQueue
from threading import Thread

from mam.errors import MamError
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.pause import Pause
    from mam.registry import Registry
    from mam.stores.port import Entry


AWAY_SECONDS = 1.0
LONGEST_SLEEP_SECONDS = 5.0
"""The longest sleep, because a removed store sends no notification."""


class Loaded(Frozen):
    """Everything was loaded again."""

    what: object
    pauses: list[Pause]


class NewEntries(Frozen):
    entries: list[Entry]
    pauses: list[Pause]


class Unavailable(Frozen):
    """The store cannot be read now; the thread tries again."""

    why: str


class FollowerFailed(Frozen):
    """The thread ended with an error, which the receiver raises."""

    error: Exception


Notification = Loaded | NewEntries | Unavailable | FollowerFailed


class JournalFollower:
    """`wake_fd` becomes readable when a notification is waiting."""

    def __init__(self, registry: Registry, load: Callable[[], object], pipe: tuple[int, int] | None = None) -> None:
        """Several followers may share one `pipe`."""
        self._registry = registry
        self._load = load
        self._queue: SimpleQueue[Notification] = SimpleQueue()
        self.wake_fd, self._wake_write_fd = pipe if pipe is not None else os.pipe()
        self._stopped = False
        for descriptor in (self.wake_fd, self._wake_write_fd):
            os.set_blocking(descriptor, False)
        Thread(target=self._run, name="mam-watch", daemon=True).start()

    @property
    def wake_write_fd(self) -> int:
        """The write end of the pipe, which signals use too."""
        return self._wake_write_fd

    def drain(self) -> list[Notification]:
        try:
            while os.read(self.wake_fd, 4096):
                pass
        except BlockingIOError:
            pass
        return [self._queue.get() for _ in range(self._queue.qsize())]

    def stop(self) -> None:
        """Ends the thread after its current wait."""
        self._stopped = True

    def _notify(self, notification: Notification) -> None:
        self._queue.put(notification)
        try:
            os.write(self._wake_write_fd, b"!")
        except BlockingIOError:
            pass  # the pipe is full, so it is readable already

    def _run(self) -> None:
        while not self._stopped:
            try:
                self._follow()
            except MamError as error:
                self._notify(Unavailable(why=str(error)))
                time.sleep(AWAY_SECONDS)
            except Exception as error:
                self._notify(FollowerFailed(error=error))
                return

    def _follow(self) -> None:
        store = self._registry.store
        offset = store.end_offset()
        self._notify(Loaded(what=self._load(), pauses=store.pauses()))
        while not self._stopped:
            entries = []
            for entry in store.entries(offset):
                offset = entry.offset
                entries.append(entry)
            self._notify(NewEntries(entries=entries, pauses=store.pauses()))
            store.wait(offset, self._sweep())

    def _sweep(self) -> float:
        """Sweep what is due; return the seconds until the next deadline."""
        try:
            if self._registry.store.due_in() == 0:
                self._registry.sweep()
            due = self._registry.store.due_in()
        except MamError:
            return LONGEST_SLEEP_SECONDS  # a store that this user may only read
        # A short pause, so that two watchers do not compete for the lock.
        return LONGEST_SLEEP_SECONDS if due is None else min(LONGEST_SLEEP_SECONDS, max(due, 0.1) + 0.001)
