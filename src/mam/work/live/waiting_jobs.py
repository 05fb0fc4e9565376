"""What a live session that waits for a person holds up: pending jobs of its labels, and the workers that take them."""

from __future__ import annotations

import os
import time

from mam.errors import MamError
from mam.machine.person import process_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.registry import Registry

LOOK_SECONDS = 10.0


def jobs_behind(registry: Registry, labels: Iterable[str]) -> list[str]:
    """One sentence for each label that has pending jobs."""
    found = []
    for label in labels:
        count = registry.pending_count(label)
        if not count:
            continue
        jobs = f"1 pending job of {label}" if count == 1 else f"{count:,} pending jobs of {label}"
        others = [worker for worker in registry.live_workers() if label in worker.labels and worker.asked is None]
        names = ", ".join(worker.name for worker in others if worker.name != process_name(os.getpid()))
        waits = "waits" if count == 1 else "wait"
        found.append(f"{jobs} can go to {names}" if names else f"{jobs} {waits} for it")
    return found


class WaitingJobs:
    """Looks from time to time, and returns what is new."""

    def __init__(self, registry: Registry, labels: Iterable[str]) -> None:
        self._registry = registry
        self._labels = tuple(labels)
        self._known: list[str] = []
        self._looked = 0.0

    def news(self) -> str | None:
        if self._looked and time.monotonic() - self._looked < LOOK_SECONDS:
            return None
        self._looked = time.monotonic()
        try:
            now = jobs_behind(self._registry, self._labels)
        except MamError:
            return None  # the next renewal reports a store that is away
        is_new, self._known = now != self._known, now
        return "; ".join(now) if now and is_new else None

    def forget(self) -> None:
        """The next question reports them again."""
        self._known, self._looked = [], 0.0
