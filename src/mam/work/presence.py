"""The worker's entry in the store: one thread renews it, and learns what a person asked of the worker."""

from __future__ import annotations

import os
from threading import Event, Lock, Thread

from mam import __version__
from mam.errors import MamError
from mam.jobs.lease import new_lease, renewal_seconds
from mam.jobs.workers import WorkerEntry
from mam.machine.person import process_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.work.context import WorkerContext
    from mam.work.worker import WorkerOptions

FIRST_SECONDS = 1.0
"""A worker that ends earlier, such as that of a short `mam run`, needs no entry and saves two writes."""


class Presence:
    """Jobs do not depend on it: if the store does not take the entry, the worker works on."""

    def __init__(self, context: WorkerContext, options: WorkerOptions, obey: Callable[[str], None]) -> None:
        self._context = context
        self._options = options
        self._store = context.registry.store
        self._obey = obey
        """Called when a person asks for DRAIN or STOP."""
        self._asked: str | None = None
        self._is_noted = False
        self._stopped = Event()
        self._writing = Lock()
        """So that `stop` removes the entry after the last renewal."""

    def start(self) -> None:
        Thread(target=self._follow, name="mam-presence", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        with self._writing:
            if self._is_noted:
                try:
                    self._store.forget_worker(process_name(os.getpid()))
                except MamError:
                    return  # its lease ends

    def _follow(self) -> None:
        entry = None
        self._stopped.wait(FIRST_SECONDS)
        while not self._stopped.is_set():
            with self._writing:
                try:
                    entry = entry or self._begin()
                    self._renew(entry)
                except MamError as error:
                    self._context.say_once(f"`mam workers` does not show this worker: {error}")
            self._stopped.wait(renewal_seconds(self._context.lease_seconds))

    def _begin(self) -> WorkerEntry:
        """Also removes what killed workers left, and an earlier process of the same name."""
        now = self._store.clock.now()
        entry = self._new_entry()
        for worker in self._store.workers():
            if worker.name == entry.name or not worker.is_live(now):
                self._store.forget_worker(worker.name)
        return entry

    def _new_entry(self) -> WorkerEntry:
        now = self._store.clock.now()
        return WorkerEntry(
            name=process_name(os.getpid()),
            owner=self._options.owner,
            host=os.uname().nodename,
            pid=os.getpid(),
            labels=self._options.labels,
            agents=self._context.agents(),
            concurrency=self._options.concurrency,
            job_id=self._options.job_id,
            version=__version__,
            started_at=now.second,
            seen_at=now.second,
            lease=new_lease(self._context.lease_seconds, now),
        )

    def _renew(self, entry: WorkerEntry) -> None:
        if self._stopped.is_set():
            return
        now = self._store.clock.now()
        lease = new_lease(self._context.lease_seconds, now)
        self._is_noted = True
        asked = self._store.note_worker(entry.replace(seen_at=now.second, lease=lease))
        if asked is not None and asked != self._asked:
            self._asked = asked
            self._obey(asked)
