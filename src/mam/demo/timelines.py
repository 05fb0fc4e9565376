"""Follow the journal and record a timeline for each job.

The journal has times in whole seconds, so each entry gets the time of reading, milliseconds after it was written.
"""

from __future__ import annotations

import time
from threading import Condition, Thread

from mam.errors import MamError
from mam.jobs.status import ENDED, RUNNING, Status
from mam.machine.processes import ProcessId
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mam.registry import Registry
    from mam.stores.port import Entry

LONGEST_SLEEP_SECONDS = 0.5


class Span(Frozen):
    """A period in which a job has one status."""

    state: Status
    since: float
    until: float | None = None
    attempt: int = 0
    owner: str | None = None
    because: str = ""
    """Why it ended: the reason of the next status, or `lost` after an expired lease."""


class Timeline(Frozen):
    """The history of one job."""

    name: str
    job_id: str
    parent: str | None = None
    spans: tuple[Span, ...] = ()
    progress_at: tuple[float, ...] = ()
    """The times of its progress events."""
    ends_reached: int = 0
    """Transitions into a final status."""
    terminal_events: int = 0
    """Terminal events."""
    detail: str = ""

    @property
    def state(self) -> Status:
        return self.spans[-1].state

    @property
    def attempts(self) -> list[Span]:
        return [span for span in self.spans if span.state is RUNNING]


class JobTimelines:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._names: dict[str, str] = {}
        self.by_job: dict[str, Timeline] = {}
        self.processes: dict[str, dict[int, ProcessId]] = {}
        """Every process that the record of a job has named."""
        self.killed_at: dict[str, float] = {}
        """When a worker was killed."""
        self.begun = time.monotonic()
        self._changed = Condition()
        self._offset = registry.store.end_offset()
        self._error: Exception | None = None
        self._ended: float | None = None
        self._stopped = False
        self._thread = Thread(target=self._follow, name="mam-demo", daemon=True)
        self._thread.start()

    @property
    def now(self) -> float:
        return time.monotonic() - self.begun

    @property
    def moment(self) -> float:
        """The end of the chart: now, or the end of the scenario."""
        return self.now if self._ended is None else self._ended

    def end(self) -> None:
        """Fix the end of the chart. The thread still reads, to detect unexpected entries."""
        self._ended = self.now

    def close(self) -> None:
        """Stop reading, so that the store can be removed."""
        self._stopped = True
        self._thread.join()

    def processes_of(self, job_ids: Iterable[str]) -> list[ProcessId]:
        return [process for job_id in job_ids for process in self.processes.get(job_id, {}).values()]

    def name(self, job_id: str, name: str) -> None:
        with self._changed:
            self._names[job_id] = name
            if job_id in self.by_job:
                self.by_job[job_id] = self.by_job[job_id].replace(name=name)

    def until(self, holds: Callable[[], bool], deadline: float, nap: float = LONGEST_SLEEP_SECONDS) -> bool:
        """Wait until the condition holds; False after the deadline."""
        with self._changed:
            while not holds():
                if self._error is not None:
                    raise self._error
                if self.now >= deadline:
                    return False
                self._changed.wait(max(0.0, min(nap, deadline - self.now)))
            return True

    # -- following -------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        store = self._registry.store
        try:
            while not self._stopped:
                for entry in store.entries(self._offset):
                    self._offset = entry.offset
                    with self._changed:
                        self._take(entry, self.now)
                        self._changed.notify_all()
                store.wait(self._offset, LONGEST_SLEEP_SECONDS)
        except (MamError, OSError) as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _take(self, entry: Entry, now: float) -> None:
        fields = entry.fields or {}
        timeline = self.by_job.get(entry.job_id)
        if timeline is None:
            parent = fields.get("parent_id")
            timeline = Timeline(
                name=self._names.get(entry.job_id) or self._child(parent), job_id=entry.job_id, parent=parent
            )
        for line in entry.lines:
            if line["event"] == "registered":
                timeline = timeline.replace(spans=(Span(state=Status(line["status"]), since=now),))
            elif line["event"] == "status_changed":
                timeline = _with_status(timeline, line, now)
            elif line["event"] == "published":
                timeline = _with_event(timeline, line["payload"], now)
        self.by_job[entry.job_id] = timeline
        for found in ((fields.get("run") or {}).get("process") or {}).values():
            process = ProcessId.from_json(found)
            if process is not None:
                self.processes.setdefault(entry.job_id, {})[process.pid] = process

    def _child(self, parent: str | None) -> str:
        siblings = sum(timeline.parent == parent for timeline in self.by_job.values() if parent is not None)
        return f"{self._names.get(parent or '', '?')}/{siblings + 1}"


def _with_status(timeline: Timeline, line: dict[str, object], now: float) -> Timeline:
    to = Status(str(line["to"]))
    because = "lost" if line.get("losses") else str(line.get("reason") or "")
    last = timeline.spans[-1].replace(until=now, because=because)
    attempt, owner = line.get("attempt"), line.get("owner")
    span = Span(
        state=to,
        since=now,
        attempt=attempt if isinstance(attempt, int) else 0,
        owner=str(owner) if owner else None,
        because=because if to in ENDED else "",
    )
    return timeline.replace(
        spans=(*timeline.spans[:-1], last, span), ends_reached=timeline.ends_reached + (to in ENDED)
    )


def _with_event(timeline: Timeline, payload: dict[str, object], now: float) -> Timeline:
    if payload["event"] in ("completed", "error"):
        return timeline.replace(terminal_events=timeline.terminal_events + 1)
    if payload["event"] != "progress":
        return timeline
    return timeline.replace(progress_at=(*timeline.progress_at, now), detail=str(payload["detail"]))
