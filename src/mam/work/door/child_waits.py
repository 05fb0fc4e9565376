"""Agents that wait for their children: parked requests, and one thread that follows the journal for all of them.

A store keeps a listener for every thread that waits in it, so there is one such thread, which lives as long as the
worker. It only collects the ids of changed jobs; the doors' thread reads them.
"""

from __future__ import annotations

import json
import time
from threading import Event, Thread

from mam.door_client import PARK_SECONDS, WAIT_LIMIT, NotHere
from mam.errors import BadInput, BadRecord, Refused
from mam.work.door.handlers import error_answer, read_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, ClassVar

    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.work.door.handlers import DoorRequest, DoorScope

    Json = dict[str, Any]

ANSWER_BYTES = 1 << 22
"""The limit for the jobs in one answer, or one job if that is larger; the others follow in the next answer."""

LONGEST_SLEEP_SECONDS = 5.0
"""Bounds how long an ending worker waits for this thread, and the cost of a lost wake-up."""


class ParkedWait:
    """One parked request."""

    NOTHING: ClassVar[Json] = {"ok": True, "jobs": [], "lost": []}
    is_for_children = True

    def __init__(self, scope: DoorScope, request: DoorRequest) -> None:
        self._bound = scope
        self.seen: dict[str, str] = _checked(scope, request.fields.get("seen"))
        longest = request.fields.get("longest", PARK_SECONDS)
        if type(longest) not in (int, float) or not 0 <= longest <= PARK_SECONDS:
            raise BadInput(why=f"longest must be a number of seconds, at most {PARK_SECONDS:g}")
        self.ends = time.monotonic() + longest

    def changes(self, job_ids: Iterable[str]) -> Json | None:
        """What has changed about these jobs since the client saw them, or None."""
        told, lost, size = [], [], 0
        for job_id in job_ids:
            try:
                job = read_child(self._bound, job_id)
            except (NotHere, BadRecord) as error:
                if not self.seen[job_id]:
                    raise
                lost.append({"job_id": job_id, **error_answer(error)})
                continue
            if _version(job) != self.seen[job_id] and size < ANSWER_BYTES:
                fields = job.to_json()
                size += len(json.dumps(fields))
                told.append({"mark": _version(job), "job": fields})
        return {"ok": True, "jobs": told, "lost": lost} if told or lost else None

    def abandon(self) -> None:
        """The client is gone; its children continue."""


class ChildWaiter:
    """Follows the journal while requests are parked; calls `on_change` in its thread with the ids of changed jobs."""

    def __init__(self, registry: Registry, on_change: Callable[[set[str]], None]) -> None:
        self._registry = registry
        self._on_change = on_change
        self._wanted = Event()
        self._closed = Event()
        self._offset: str | None = None
        self._thread: Thread | None = None

    def listen(self) -> None:
        """Every entry written after this returns will be noticed."""
        if not self._wanted.is_set():
            self._offset = self._registry.store.end_offset()
            self._wanted.set()
        if self._thread is None:
            self._thread = Thread(target=self._run, name="mam-door-ear", daemon=True)
            self._thread.start()

    def rest(self) -> None:
        self._wanted.clear()

    def close(self) -> None:
        self._closed.set()
        self._wanted.set()

    def _run(self) -> None:
        while self._wanted.wait() and not self._closed.is_set():
            try:
                self._listen_once()
            except Exception:  # the store is unreachable; the clients learn it from their next request
                self._closed.wait(1.0)

    def _listen_once(self) -> None:
        store = self._registry.store
        offset = self._offset or store.end_offset()
        due = store.due_in()
        store.wait(offset, LONGEST_SLEEP_SECONDS if due is None else min(LONGEST_SLEEP_SECONDS, due + 0.001))
        if self._closed.is_set():
            return
        # So that an expired lease is noticed even if no worker claims.
        self._registry.sweep_if_due()
        changed = set()
        for entry in store.entries(offset):
            offset = entry.offset
            changed.add(entry.job_id)
        self._offset = offset
        if changed:
            self._on_change(changed)


def _checked(scope: DoorScope, seen: object) -> dict[str, str]:
    if not isinstance(seen, dict) or not 0 < len(seen) <= WAIT_LIMIT or set(map(type, seen.values())) != {str}:
        raise BadInput(why='wait takes {"seen": {"<id of a child>": "<mark of the last answer>"}}, at most 1,000')
    if scope.job_id in seen:
        raise Refused(why=f"Job {scope.job_id} cannot wait for its own end.")
    return seen


def _version(job: Job) -> str:
    """Differs after every change that a waiting client should see."""
    return f"{job.status}:{job.attempt}:{job.number}"
