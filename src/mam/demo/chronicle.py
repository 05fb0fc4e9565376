"""What happened to each job and when, from the journal as it grows.

The journal's own times are whole seconds; here each entry gets the moment at which it was read, which is milliseconds
after it was written.
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
    """One stretch of a job's life."""

    state: Status
    since: float
    until: float | None = None
    attempt: int = 0
    owner: str | None = None
    because: str = ""
    """How it ended: the next state's reason, or `lost` when the lease ran out."""


class Life(Frozen):
    """Everything about one job so far."""

    name: str
    job_id: str
    parent: str | None = None
    spans: tuple[Span, ...] = ()
    signs: tuple[float, ...] = ()
    """When it told of its progress."""
    endings: int = 0
    """Moves into an end state."""
    farewells: int = 0
    """Terminal events."""
    detail: str = ""

    @property
    def state(self) -> Status:
        return self.spans[-1].state

    @property
    def attempts(self) -> list[Span]:
        return [span for span in self.spans if span.state is RUNNING]


class Chronicle:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._names: dict[str, str] = {}
        self.lives: dict[str, Life] = {}
        self.processes: dict[str, dict[int, ProcessId]] = {}
        """Of each job, every one that its record ever named."""
        self.deaths: dict[str, float] = {}
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
        """How far the chart goes: now, or when all was over."""
        return self.now if self._ended is None else self._ended

    def end(self) -> None:
        """Nothing that comes belongs to the picture; it is still read, since nothing should come."""
        self._ended = self.now

    def close(self) -> None:
        """The store is not touched any more, so that it can be removed."""
        self._stopped = True
        self._thread.join()

    def of(self, job_ids: Iterable[str]) -> list[ProcessId]:
        return [process for job_id in job_ids for process in self.processes.get(job_id, {}).values()]

    def name(self, job_id: str, name: str) -> None:
        with self._changed:
            self._names[job_id] = name
            if job_id in self.lives:
                self.lives[job_id] = self.lives[job_id].replace(name=name)

    def until(self, holds: Callable[[], bool], deadline: float, nap: float = LONGEST_SLEEP_SECONDS) -> bool:
        """Sleep until something holds that the journal decides; False when it takes too long."""
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
        life = self.lives.get(entry.job_id)
        if life is None:
            parent = fields.get("parent_id")
            life = Life(name=self._names.get(entry.job_id) or self._child(parent), job_id=entry.job_id, parent=parent)
        for line in entry.lines:
            if line["event"] == "registered":
                life = life.replace(spans=(Span(state=Status(line["status"]), since=now),))
            elif line["event"] == "status_changed":
                life = _moved(life, line, now)
            elif line["event"] == "published":
                life = _told(life, line["payload"], now)
        self.lives[entry.job_id] = life
        for found in ((fields.get("run") or {}).get("process") or {}).values():
            process = ProcessId.from_json(found)
            if process is not None:
                self.processes.setdefault(entry.job_id, {})[process.pid] = process

    def _child(self, parent: str | None) -> str:
        siblings = sum(life.parent == parent for life in self.lives.values() if parent is not None)
        return f"{self._names.get(parent or '', '?')}/{siblings + 1}"


def _moved(life: Life, line: dict[str, object], now: float) -> Life:
    to = Status(str(line["to"]))
    because = "lost" if line.get("losses") else str(line.get("reason") or "")
    last = life.spans[-1].replace(until=now, because=because)
    attempt, owner = line.get("attempt"), line.get("owner")
    span = Span(
        state=to,
        since=now,
        attempt=attempt if isinstance(attempt, int) else 0,
        owner=str(owner) if owner else None,
        because=because if to in ENDED else "",
    )
    return life.replace(spans=(*life.spans[:-1], last, span), endings=life.endings + (to in ENDED))


def _told(life: Life, payload: dict[str, object], now: float) -> Life:
    if payload["event"] in ("completed", "error"):
        return life.replace(farewells=life.farewells + 1)
    if payload["event"] != "progress":
        return life
    return life.replace(signs=(*life.signs, now), detail=str(payload["detail"]))
