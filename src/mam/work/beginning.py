"""Telling that an agent runs: at once when the agent speaks, else a moment after it began.

Of an agent that ends within that moment beginning and end are told in one act, which is one visit to the disk less.
Who it is must not wait that long: a worker, its keeper and its guardian may be killed together, and the next attempt
has to find what they left. So its name is written beside its output first. That needs no sync: a power cut ends the
agent too.
"""

from __future__ import annotations

import json
import os
from threading import Lock

from mam.work.home import write_private
from mam.writing import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json
    from mam.work.holding import Holding

MOMENT_SECONDS = 0.1
_TRACE = "process.json"
_TRACE_LIMIT = 1 << 16


class Beginning:
    """Of one attempt. The attempt's thread and the door's may both want it told; one of them does it."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding
        self._lock = Lock()
        self._run: Json | None = None
        self.has_happened = False

    def happened(self, run: Json) -> None:
        """The agent runs, and nobody knows yet."""
        with self._lock:
            self._run = run
            self.has_happened = True

    def tell(self) -> None:
        """Does nothing before it has happened, and after it has been told."""
        with self._lock:
            if self._run is not None:
                self._holding.started(self._run)
                self._run = None

    def untold(self) -> Json | None:
        """What whoever writes the end has to tell along with it."""
        with self._lock:
            return self._run


def leave_trace(private_directory: str, run: Json) -> bool:
    """Whether that could be done: an agent may spoil its directory, and a disk may be full."""
    try:
        write_private(os.path.join(private_directory, _TRACE), to_bytes({"host": run["host"], **run["process"]}))
    except OSError:
        return False
    return True


def earlier_traces(job: Job, home: str) -> list[Json]:
    """What earlier attempts on this host have left that the record may not know of, newest first."""
    known = (job.run or {}).get("attempt")
    least = known if type(known) is int else 0
    try:
        numbers = [int(name) for name in os.listdir(home) if name.isascii() and name.isdigit()]
    except OSError:
        return []
    unknown = sorted((number for number in numbers if least < number < job.attempt), reverse=True)
    return [trace for number in unknown if (trace := _read(os.path.join(home, str(number), _TRACE))) is not None]


def _read(path: str) -> Json | None:
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(_TRACE_LIMIT))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
