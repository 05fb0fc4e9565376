"""Telling that an agent runs: at once when the agent speaks, else a moment after it began.

Of an agent that ends within that moment beginning and end are told in one act, which is one visit to the disk less.
Who it is must not wait that long, and is written down first: see `traces.py`.
"""

from __future__ import annotations

from threading import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json
    from mam.work.claim import Claim

MOMENT_SECONDS = 0.1


class StartReporter:
    """Of one attempt. The attempt's thread and the door's may both want it told; one of them does it."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._lock = Lock()
        self._run: Json | None = None
        self.has_started = False

    def agent_started(self, run: Json) -> None:
        """The agent runs, and nobody knows yet."""
        with self._lock:
            self._run = run
            self.has_started = True

    def report(self) -> None:
        """Does nothing before it has happened, and after it has been told."""
        with self._lock:
            if self._run is not None:
                self._claim.started(self._run)
                self._run = None

    def unreported(self) -> Json | None:
        """What whoever writes the end has to tell along with it."""
        with self._lock:
            return self._run
