"""One thread that follows the journal for the whole worker: it wakes whoever sleeps, and copies the audit log.

The audit log is written here and not after each act, since nobody who waits for a job has to wait for its shadow.
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
    from mam.stores.port import Store

_BUSY_SECONDS = 0.05
_COPY_SECONDS = 0.5
"""How far the audit log of a busy worker may be behind; many jobs are copied at once for little more than one."""


class JournalFollower:
    """`changed` is told which jobs changed, and what of them, None for one that is gone; if there is none, there may be
    something to claim."""

    def __init__(
        self,
        store: Store,
        shadow: AuditSink | None,
        on_change: Callable[[dict[str, Json | None]], None],
        can_claim: Callable[[], bool],
    ) -> None:
        self._store = store
        self._shadow = shadow
        self._on_change = on_change
        self._can_claim = can_claim
        """Whether what time decides matters to anybody here; a worker with its hands full leaves it to others."""
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
        """Its thread may sleep on for a while, and nobody waits for that: what it would have copied is copied here."""
        self._stopped.set()
        self._copy()

    def _follow(self) -> None:
        self._copy()
        is_away = False
        while not self._stopped.is_set():
            try:
                if is_away:
                    self._store.end_offset()  # which sees what has become of the store
                    self._check_journal_id()
                self._turn()
                is_away = False
            except Exception:  # the store is away; those who write will say so
                is_away = True
                self._stopped.wait(1.0)

    def _check_journal_id(self) -> None:
        """Somebody may have removed the store and made another, in whose journal the offset is no place at all: nothing
        would ever be behind it, and it would never be the end that one can wait at."""
        if self._store.journal_id != self._journal_id:
            self._begin()
            self._on_change({})

    def _turn(self) -> None:
        self._store.wait(self._offset, self._poll_timeout())
        if not self._can_claim():
            # A job tells of itself three times within moments, and each look takes time from whoever runs it.
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
        self._offset = offset  # only now: what could not be looked at is news again
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
