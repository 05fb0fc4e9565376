"""What a waiting process wants to learn from the journal, so that a store may let it sleep through other entries.

A new job wakes the processes that wait for its label. The store names one of them, which looks at once. Each of the
others looks after a random pause, in case that one is busy, and goes back to sleep if it learns before that the job was
claimed: so about as many look as may get it.
"""

from __future__ import annotations

import random
import time

from mam.jobs.status import PENDING, RUNNING, WAITING
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_SECONDS = 0.02
"""For each process that waits for the same label: longer than it takes to claim a job."""

LONGEST_PAUSE_SECONDS = 1.8
FIRST_SECONDS = 0.2
"""How long at most the others leave a new job to the first: it may be far from the server."""

NEVER = float("inf")


class Interest(Frozen):
    """The labels from which a process claims while it is free, and the jobs that it holds."""

    labels: tuple[str, ...]
    is_free: Callable[[], bool] = lambda: True
    holds: Callable[[str], bool] = lambda _job_id: False
    own_pause: Callable[[], float] = lambda: 0.0
    """For how many seconds it may leave what it did itself to jobs that it holds, of which it knows already."""


class News(Frozen):
    """An act on a job."""

    waiting: int
    """How many processes wait for the label."""
    first: int
    """Which of them looks first: the process of the server that works for it."""
    status: str
    job_id: str
    label: str
    """Empty when the act may concern any label: a pause was lifted, a key is free, a dependency has ended."""


def parse_news(text: str) -> News | None:
    parts = text.split(" ", 4)
    if len(parts) < 5 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        return None  # another program said it
    waiting, first, status, job_id, label = parts
    return News(waiting=int(waiting), first=int(first), status=status, job_id=job_id, label=label)


class Prospect:
    """Whether and when one process looks for work, and at what became of the jobs that it holds."""

    def __init__(self) -> None:
        self._work_at = self._held_at = NEVER
        self._jobs = 0

    @property
    def looks_at(self) -> float:
        """By the monotonic clock; NEVER when there is nothing to look for."""
        return min(self._work_at, self._held_at)

    def look_now(self) -> None:
        self._held_at = 0.0

    def hear(self, news: News, interest: Interest, *, is_own: bool = False, is_first: bool = False) -> None:
        """`is_own`: this process did it. `is_first`: it is the one that looks first."""
        if interest.holds(news.job_id):
            pause = interest.own_pause() if is_own else 0.0
            self._held_at = min(self._held_at, time.monotonic() + pause) if pause else 0.0
        elif not interest.is_free() or (news.label and news.label not in interest.labels):
            return
        elif news.status == RUNNING:
            self._jobs -= 1
            if self._jobs <= 0:
                self._work_at, self._jobs = NEVER, 0
        elif news.status in (PENDING, WAITING) or not news.label:
            self._jobs += 1
            self._work_at = min(self._work_at, time.monotonic() + (0.0 if is_first else _pause(news)))

    def forget(self) -> None:
        """It looks now."""
        self._work_at = self._held_at = NEVER
        self._jobs = 0


def _pause(news: News) -> float:
    spread = min(LONGEST_PAUSE_SECONDS, PAUSE_SECONDS * max(0, news.waiting - 1))
    leave = min(FIRST_SECONDS, spread) if news.label else 0.0  # without a label, the first may wait for another one
    return leave + random.uniform(0, spread)  # noqa: S311 - not a secret
