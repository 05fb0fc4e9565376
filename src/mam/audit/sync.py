"""The audit log as the registry's shadow: after each act it copies what the journal has and it lacks.

It never fails what it shadows: every error ends here, as one warning and one count, and the next act catches up.
"""

from __future__ import annotations

import os

from mam.audit.append import copy
from mam.audit.cursor import Cursor
from mam.audit.fetch import fetch
from mam.audit.files import JobFolder
from mam.audit.lock import AuditLogLock
from mam.util.notices import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.audit.fetch import Batch
    from mam.stores.port import Store

LOCK_SECONDS = 2.0


class AuditLog:
    """Threads and processes may share one; several stores may share one directory."""

    def __init__(self, logs_dir: str) -> None:
        self.logs_dir = logs_dir
        self._wait_seconds = LOCK_SECONDS
        self._warned: str | None = None

    def follow(self, store: Store) -> None:
        """Copy what the store's journal has and this log lacks, up to a bound that no act should feel."""
        self._best_effort(lambda: self._copy_some(store), store)

    def catch_up(self, store: Store, copied: Callable[[int], None] = lambda _count: None) -> None:
        """Copy all of it, for those who are about to read. `copied` hears of so many entries more, now and then."""

        def do() -> None:
            began_anew = False
            while (batch := self._copy_some(store)).needs_writing:
                if batch.replaced and began_anew:
                    raise RuntimeError("the journal does not say the same twice")
                began_anew = began_anew or batch.replaced
                copied(len(batch.entries))

        self._best_effort(do, store)

    def begin_again(self, store: Store) -> None:
        """Copy all of it once more: somebody has removed histories. Lines that are still there are recognised."""

        def do(root: int) -> None:
            with Cursor(root, store.journal_id) as cursor:
                cursor.begin_anew()
                cursor.save(cursor.at, caught_up=False)

        self._alone(do)
        self.catch_up(store)

    def refused(self, store: Store, job_id: str, verb: str, why: str) -> None:
        """A write that was refused changes no record, so no journal tells of it; this line does."""

        def do() -> None:
            now = store.clock.now().second
            batch = fetch(self.logs_dir, store)

            def write(root: int) -> None:
                self._copy(root, batch, store)
                said = {"timestamp": now, "event": "refused", "job_id": job_id, "verb": verb, "why": why}
                _append_local(root, job_id, said)

            self._alone(write)

        self._best_effort(do, store)

    def append_local(self, job_id: str, line: dict[str, Any]) -> None:
        """A line that no journal has, such as `received`: what this host has seen and the registry was not told."""
        self._best_effort(lambda: self._alone(lambda root: _append_local(root, job_id, line)))

    def begin_local(self, job_id: str, record: dict[str, Any], now: str) -> None:
        """A history for a job that no store of mam's holds: old scripts register by hand."""
        status = str(record.get("status", "pending"))

        def write(root: int) -> None:
            with JobFolder(root, job_id) as folder:
                folder.write_meta_once(record)
                folder.append({"timestamp": now, "event": "registered", "job_id": job_id, "status": status})
                folder.write_status(job_id, status, now)

        self._best_effort(lambda: self._alone(write))

    def set_status_local(self, job_id: str, status: str, now: str) -> None:
        """The status of such a job."""

        def write(root: int) -> None:
            with JobFolder(root, job_id) as folder:
                folder.write_status(job_id, status, now)

        self._best_effort(lambda: self._alone(write))

    def _copy_some(self, store: Store) -> Batch:
        """What there was to copy."""
        batch = fetch(self.logs_dir, store)
        if batch.needs_writing:
            self._alone(lambda root: self._copy(root, batch, store))
        return batch

    def _copy(self, root: int, batch: Batch, store: Store) -> None:
        copy(root, batch, lambda error: self._failed(error, store))

    def _alone(self, write: Callable[[int], None]) -> None:
        with AuditLogLock(self.logs_dir, self._wait_seconds) as root:
            self._wait_seconds = LOCK_SECONDS
            write(root)

    def _best_effort(self, do: Callable[[], object], store: Store | None = None) -> None:
        try:
            do()
        except Exception as error:
            if isinstance(error, TimeoutError):
                # Whoever has waited in vain once only looks in, until it has gone well again.
                self._wait_seconds = 0.0
            self._failed(error, store)

    def _failed(self, error: Exception, store: Store | None) -> None:
        """Told once for each new problem, counted each time."""
        problem = f"{self.logs_dir}: {_in_words(error)}"
        if problem != self._warned:
            self._warned = problem
            warn("mam.audit", f"the audit log is behind and will be caught up: {problem}")
        if store is None or store.home is None:
            return
        try:
            from mam.audit.failures import count_failure

            count_failure(store.home, problem, store.clock.now().second)
        except Exception:  # noqa: S110 - the disk may be as full there as here
            pass


def _append_local(root: int, job_id: str, line: dict[str, Any]) -> None:
    with JobFolder(root, job_id) as folder:
        # `entry` says what came from a journal; a line that did not must not look as if it had.
        folder.append({name: value for name, value in line.items() if name != "entry"})


def _in_words(error: Exception) -> str:
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.strerror} ({os.path.basename(str(error.filename))})" if error.filename else error.strerror
