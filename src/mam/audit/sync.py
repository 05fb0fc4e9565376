"""Synchronises the audit log with the journal after each act.

An error of the log never fails the act: it becomes one warning and one count, and the next act catches up.
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
        """Copy the missing entries, up to a bound that keeps acts fast."""
        self._best_effort(lambda: self._copy_some(store), store)

    def catch_up(self, store: Store, copied: Callable[[int], None] = lambda _count: None) -> None:
        """Copy all missing entries, before the log is read. `copied` gets the number of entries after each batch."""

        def do() -> None:
            started_over = False
            while (batch := self._copy_some(store)).needs_writing:
                if batch.replaced and started_over:
                    raise RuntimeError("the journal changes while it is read")
                started_over = started_over or batch.replaced
                copied(len(batch.entries))

        self._best_effort(do, store)

    def history(self, store: Store, job_id: str) -> list[dict[str, Any]]:
        """The lines of one job, oldest first, with what was missing of them as far as one batch goes."""
        from mam.audit.log import iter_lines

        self.follow(store)
        return list(iter_lines(self.logs_dir, job_id))

    def begin_again(self, store: Store) -> None:
        """Copy the whole journal again, after histories were removed. Lines that are still there are not repeated."""

        def do(root: int) -> None:
            with Cursor(root, store.journal_id) as cursor:
                cursor.start_over()
                cursor.save(cursor.at, caught_up=False)

        self._with_lock(do)
        self.catch_up(store)

    def refused(self, store: Store, job_id: str, verb: str, why: str) -> None:
        """Record a refused write, which changes no record and has no journal entry."""

        def do() -> None:
            now = store.clock.now().second
            batch = fetch(self.logs_dir, store)

            def write(root: int) -> None:
                self._copy(root, batch, store)
                line = {"timestamp": now, "event": "refused", "job_id": job_id, "verb": verb, "why": why}
                _append_local(root, job_id, line)

            self._with_lock(write)

        self._best_effort(do, store)

    def append_local(self, job_id: str, line: dict[str, Any]) -> None:
        """Append a line that has no journal entry, such as `received`."""
        self._best_effort(lambda: self._with_lock(lambda root: _append_local(root, job_id, line)))

    def begin_local(self, job_id: str, record: dict[str, Any], now: str) -> None:
        """Begin the history of a job that is in no store of mam: the old scripts register by hand."""
        status = str(record.get("status", "pending"))

        def write(root: int) -> None:
            with JobFolder(root, job_id) as folder:
                folder.write_meta_once(record)
                folder.append({"timestamp": now, "event": "registered", "job_id": job_id, "status": status})
                folder.write_status(job_id, status, now)

        self._best_effort(lambda: self._with_lock(write))

    def set_status_local(self, job_id: str, status: str, now: str) -> None:
        """Set the status of such a job."""

        def write(root: int) -> None:
            with JobFolder(root, job_id) as folder:
                folder.write_status(job_id, status, now)

        self._best_effort(lambda: self._with_lock(write))

    def _copy_some(self, store: Store) -> Batch:
        """Copies one batch and returns it."""
        batch = fetch(self.logs_dir, store)
        if batch.needs_writing:
            self._with_lock(lambda root: self._copy(root, batch, store))
        return batch

    def _copy(self, root: int, batch: Batch, store: Store) -> None:
        copy(root, batch, lambda error: self._failed(error, store))

    def _with_lock(self, write: Callable[[int], None]) -> None:
        with AuditLogLock(self.logs_dir, self._wait_seconds) as root:
            self._wait_seconds = LOCK_SECONDS
            write(root)

    def _best_effort(self, do: Callable[[], object], store: Store | None = None) -> None:
        try:
            do()
        except Exception as error:
            if isinstance(error, TimeoutError):
                # After one timeout, later acts do not wait until the lock was free once.
                self._wait_seconds = 0.0
            self._failed(error, store)

    def _failed(self, error: Exception, store: Store | None) -> None:
        """Warns once for each new problem, and counts each failure."""
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
        # `entry` marks lines that came from a journal.
        folder.append({name: value for name, value in line.items() if name != "entry"})


def _in_words(error: Exception) -> str:
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.strerror} ({os.path.basename(str(error.filename))})" if error.filename else error.strerror
