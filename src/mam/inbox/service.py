"""Run an inbox and a worker in one process: one thread ingests files, the other runs jobs.

The worker is optional: workers elsewhere may run the jobs.
"""

from __future__ import annotations

import time
from queue import Empty, SimpleQueue
from threading import Thread

from mam.errors import MamError
from mam.inbox.watcher import FileWatcher
from mam.jobs.status import PENDING, RUNNING, WAITING
from mam.work.journal_follower import JournalFollower

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.inbox.loop import Inbox
    from mam.jobs.record import Job
    from mam.stores.port import Store
    from mam.work.worker import Worker

_AWAY_SECONDS = 1.0
_PATIENT_TURNS = 3
"""How many cycles with problems `once` tolerates."""


class InboxService:
    def __init__(
        self, inbox: Inbox, store: Store, worker: Worker | None, warn: Callable[[str], None], *, once: bool
    ) -> None:
        self._inbox = inbox
        self._worker = worker
        self._warn = warn
        self._once = once
        self._wakes: SimpleQueue[set[str] | None] = SimpleQueue()
        """Jobs with new journal entries; None for a change in the tree, or to stop. Safe in a signal handler."""
        self._stopping = False
        self._failed_turns = 0
        self.failure: Exception | None = None
        """The error that stopped it."""
        self._follower = JournalFollower(store, None, lambda job_ids: self._wakes.put(set(job_ids)), lambda: False)
        self._watcher = FileWatcher(inbox.tree.inbox, lambda: self._wakes.put(None), self._on_watch_error)
        self._thread = Thread(target=self._watch, name="mam-inbox", daemon=True)

    def run(self) -> None:
        """Run until the worker stops or, with `once`, until everything is done."""
        self._follower.start()
        self._watcher.start()
        self._thread.start()
        try:
            if self._worker is not None:
                self._worker.run()
            else:
                self._thread.join()
        finally:
            self.stop()
            self._thread.join()
            self._watcher.stop()
            self._follower.stop()
            self._inbox.close()

    def stop(self) -> None:
        """Safe in a signal handler."""
        self._stopping = True
        self._wakes.put(None)

    hand_back = stop
    """Without a worker there are no claims to release."""

    def _watch(self) -> None:
        try:
            self._watch_on()
        except Exception as error:  # a bug in mam must not leave a worker running without an inbox
            self.failure = error
        if self._worker is not None and not self._stopping:
            self._worker.stop()

    def _watch_on(self) -> None:
        changed: set[str] | None = None
        scan = True
        while True:
            last = self._stopping
            wait = self._run_cycle(changed, scan=scan and not last)
            if last or (self._once and self._is_done()):
                break
            changed, scan = self._next(wait) if self.failure is None else (None, True)

    def _run_cycle(self, changed: set[str] | None, *, scan: bool) -> float:
        try:
            wait = self._inbox.run_cycle(changed, scan=scan)
        except (MamError, OSError) as error:
            self._warn(error.strerror or str(error) if isinstance(error, OSError) else str(error))
            self.failure, wait = error, 0.0
            self._failed_turns += 1
            time.sleep(0 if self._stopping else _AWAY_SECONDS)
        else:
            self.failure = None
            self._failed_turns = self._failed_turns + 1 if self._inbox.problems else 0
        return wait

    def _next(self, wait: float) -> tuple[set[str] | None, bool]:
        """The jobs that changed within this time, and whether to scan the tree."""
        changed: set[str] = set()
        scan = False
        ends = time.monotonic() + wait
        while True:
            try:
                job_ids = self._wakes.get(timeout=max(0.0, ends - time.monotonic()))
            except Empty:
                return changed, scan or not changed
            if job_ids is None:
                scan = True
            else:
                changed |= job_ids
            ends = time.monotonic() if self._wakes.empty() else ends

    def _is_done(self) -> bool:
        if self._failed_turns >= _PATIENT_TURNS:
            return True
        if self._inbox.waiting or self._failed_turns:
            return False
        return self._worker is None or not any(map(self._is_ours, self._inbox.jobs.values()))

    def _is_ours(self, job: Job) -> bool:
        """Whether the worker in this process will end the job; it does not wait for a start time or for other jobs."""
        mine = job.agent_session == self._inbox.settings.label
        return mine and (job.status in (PENDING, RUNNING) or (job.status is WAITING and job.waiting_for == "retry"))

    def _on_watch_error(self, why: str) -> None:
        self._warn(f"changes are not noticed at once ({why}); mam scans the inbox every few seconds")
