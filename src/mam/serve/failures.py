"""Counts failures of each caller, so that guessing is slow."""

from __future__ import annotations

import time
from collections import OrderedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CALLERS_KEPT = 10_000


class FailureLimit:
    """At most `most` failures of one caller in `seconds`. Used by the event loop only."""

    def __init__(self, most: int, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._now = most, seconds, now
        self._failures: OrderedDict[str, list[float]] = OrderedDict()

    def seconds_left(self, caller: str) -> int:
        """How long this caller has to wait; 0 if it may try."""
        recent = self._recent(caller)
        if len(recent) < self._most:
            return 0
        return max(1, int(recent[0] + self._seconds - self._now()) + 1)

    def note(self, caller: str) -> None:
        self._failures[caller] = [*self._recent(caller)[-self._most :], self._now()]
        self._failures.move_to_end(caller)
        while len(self._failures) > CALLERS_KEPT:
            self._failures.popitem(last=False)

    def forget(self, caller: str) -> None:
        self._failures.pop(caller, None)

    def _recent(self, caller: str) -> list[float]:
        oldest = self._now() - self._seconds
        return [at for at in self._failures.get(caller, ()) if at > oldest]
