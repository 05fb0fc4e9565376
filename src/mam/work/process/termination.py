"""The end of a tree, step by step, by a process that has other duties meanwhile: first asked, then forced."""

from __future__ import annotations

import time

from mam.work.process.tree import kill_descendants, terminate_descendants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_SHORTEST_REST, _LONGEST_REST = 0.002, 0.25


class Termination:
    """Of everything below this process. `step` is called whenever its time has come, until no child is left."""

    def __init__(self, grace: float, why: str) -> None:
        self.why = why
        self.forced_at: float | None = None
        self._deadline = time.monotonic() + max(0.0, grace)
        self._asked = False
        self._next = 0.0
        self._rest = _SHORTEST_REST

    def shorten_grace(self, grace: float) -> None:
        """A later word can only shorten the grace."""
        self._deadline = min(self._deadline, time.monotonic() + max(0.0, grace))
        self._next = min(self._next, self._deadline)

    def wakes_at(self) -> float:
        return self._next

    def step(self, reap: Callable[[], object], spare: Collection[int] = ()) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        if not self._asked and now < self._deadline:
            terminate_descendants(self._deadline, spare)
            self._next = self._deadline
        elif now >= self._deadline:
            self.forced_at = self.forced_at or now
            is_quiet = kill_descendants(reap, spare)
            # Dying takes its time; somebody that cannot be ended at all must not cost a whole processor.
            self._rest = min(self._rest * 1.5, _LONGEST_REST) if is_quiet else _SHORTEST_REST
            self._next = time.monotonic() + self._rest
        self._asked = True
