"""Where `mam subscribe --all` ended, so that the next one goes on there: a small file beside the audit log.

It may be a little behind, and is written without a sync. What was told of a job stands in that job's own history, so
nothing is told twice that was told before the file was written.
"""

from __future__ import annotations

import os
import time

from mam.audit.cursor import position_behind
from mam.bus.place import Sent, read_sent, still_holds, write_sent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.port import Entry, Store

NAME = ".subscribe-all.json"
_SAVE_SECONDS = 0.25


class Bookmark:
    def __init__(self, store: Store, logs_dir: str) -> None:
        self._store = store
        self._path = os.path.join(logs_dir, NAME)
        self._last: tuple[Entry, str | None] | None = None
        self._saved_at = 0.0

    def cursor(self) -> str | None:
        """None when there is none, or when the journal is not the one that it was made in."""
        sent = read_sent(self._path)
        return sent.at.place if sent is not None and still_holds(self._store, sent) else None

    def note(self, entry: Entry, before: str | None) -> None:
        """Everything up to this entry has been told."""
        self._last = (entry, before)
        if time.monotonic() - self._saved_at >= _SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        if self._last is None:
            return
        at, self._last, self._saved_at = position_behind(*self._last), None, time.monotonic()
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            write_sent(self._path, Sent(broker="", journal_id=self._store.journal_id, at=at))
        except OSError:
            return  # the next one begins a little earlier
