"""Sleeping until somebody has committed something to an SQLite database.

Whoever writes does nothing for those who wait. They are told that the log is written, a sync before anybody can read
what stands in it; so they look again and again then, soon at first and later and later.
"""

from __future__ import annotations

import os
import time

from mam.stores.watch import Watch, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Look = Callable[[], tuple[str, int]]
    """The end of the journal, and a number that another one takes the place of at every commit, also of what is not in
    the journal."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 1.0
"""About as long as a sync takes, and as late as the news of one that takes very long may come."""
_EXPECTED_SECONDS = 60.0
"""After that whoever wrote is taken to have died before the commit, or it was seen already."""


class Waiter:
    """One for each thread that waits: what inotify has told to one it does not tell to another."""

    def __init__(self, path: str, look: Look) -> None:
        directory, name = os.path.split(path)
        self._watch = Watch(directory, written(f"{name}-wal"))
        self._look = look
        _, self._seen = look()
        self._pause = self._expected_until = 0.0
        """What was written may be committed yet, also if whoever waited for it has been here and gone meanwhile."""

    def wait(self, cursor: str, timeout: float) -> bool:
        """Whether there may be news behind the cursor, or something else has become another."""
        ends = time.monotonic() + timeout
        while not self._has_changed(cursor):
            now = time.monotonic()
            if now >= ends:
                return False
            is_expected = now < self._expected_until
            if self._watch.wait(min(ends - now, self._pause) if is_expected else ends - now):
                self._pause, self._expected_until = _FIRST_PAUSE, time.monotonic() + _EXPECTED_SECONDS
            else:
                self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        self._expected_until = 0.0
        return True

    def close(self) -> None:
        self._watch.close()

    def _has_changed(self, cursor: str) -> bool:
        end, number = self._look()
        seen, self._seen = self._seen, number
        return end != cursor or number != seen
