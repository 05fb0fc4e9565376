"""One thread per worker that follows the journal: it wakes the worker and copies new entries into the audit log.

The audit log is written here and not after each act, so that no job waits for it.
"""

from __future__ import annotations

import time
from threading import Event, Lock, Thread

from mam.registry import LONGEST_SLEEP_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.record import Json
    from mam.registry import AuditSink
    from mam.stores.interest import Interest
    from mam.stores.port import Store

_BUSY_SECONDS = 0.05
_COPY_SECONDS = 0.5
"""How far the audit log of a busy worker may lag; copying many entries costs little more than copying one."""


class JournalFollower:
    """Calls `on_change` with the changed fields of each changed job, None for a removed one. An empty dictionary means
    that there may be something to claim."""

    def __init__(
        self,
        store: Store,
        shadow: AuditSink | None,
        on_change: Callable[[dict[str, Json | None]], None],
        can_claim: Callable[[], bool],
        interest: Interest | None = None,
    ) -> None:
        self._store = store
        self._shadow = shadow
        self._on_change = on_change
        self._can_claim = can_claim
        """Whether this worker has a free slot. A full worker leaves due leases and waits to others."""
        self._interest = interest
        """None: every entry."""
        self._stopped = Event()
        self._copying = Lock()
        self._lags, self._copied = False, 0.0
        self._thread = Thread(target=self._follow, name="mam-news", daemon=True)

    def start(self) -> None:
        self._begin()
        self._thread.start()

    def _begin(self) -> None:
        self._offset = self._store.end_offset()
        self._journal_id = self._store.journal_id

    def stop(self) -> None:
        """Does not wait for the thread, which may sleep: copies what the thread would have copied."""
        self._stopped.set()
        self._copy()

    def _follow(self) -> None:
        self._copy()
        is_away = False
        while not self._stopped.is_set():
            try:
                if is_away:
                    self._store.end_offset()  # which notices that the store was moved or replaced
                    self._check_journal_id()
                self._turn()
                is_away = False
            except Exception:  # the store is unreachable; the writers report it
                is_away = True
                self._stopped.wait(1.0)

    def _check_journal_id(self) -> None:
        """A user may have replaced the store by another one, whose journal does not contain the offset: nothing would
        ever follow it."""
        if self._store.journal_id != self._journal_id:
            self._begin()
            self._on_change({})

    def _turn(self) -> None:
        self._store.wait(self._offset, self._poll_timeout(), self._interest)
        if not self._can_claim():
            # A job writes three entries within moments, and each read takes time from the thread that runs it.
            self._stopped.wait(_BUSY_SECONDS)
        if self._stopped.is_set():
            return
        changes: dict[str, Json | None] = {}
        offset = self._offset
        for entry in self._store.entries(offset):
            offset = entry.offset
            changes[entry.job_id] = (
                None if entry.fields is None else {**(changes.get(entry.job_id) or {}), **entry.fields}
            )
        self._on_change(changes)
        self._offset = offset  # only now, so that changes are read again if `on_change` failed
        self._lags = self._lags or bool(changes)
        if self._lags and time.monotonic() >= self._copied + _COPY_SECONDS:
            self._copy()
        if not changes:
            self._check_journal_id()

    def _poll_timeout(self) -> float:
        due = self._store.due_in() if self._can_claim() else None
        longest = _COPY_SECONDS if self._lags else LONGEST_SLEEP_SECONDS
        return longest if due is None else min(longest, due + 0.001)

    def _copy(self) -> None:
        if self._shadow is not None:
            with self._copying:
                self._shadow.follow(self._store)
        self._lags, self._copied = False, time.monotonic()
