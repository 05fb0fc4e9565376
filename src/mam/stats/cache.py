"""What the journal has told so far, in the user's cache, so that each call reads only what is new.

It is derived from the journal and nothing else. When it is damaged, of another version, or speaks of entries that the
journal does not have (a store that was restored from a backup), it is made anew from the journal's beginning.
"""

from __future__ import annotations

import json
import os
import sqlite3
from itertools import islice

from mam.audit.cursor import BEGINNING, Position, mark_of, position_behind
from mam.config_file import cache_directory
from mam.stats.fold import Told, told_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.stores.port import Entry, Store

VERSION = 1
PAGE = 5_000


class StatsCache:
    """`with StatsCache(store) as cache:` up to date when it is opened."""

    def __init__(self, store: Store, told: Callable[[int], None] = lambda _count: None) -> None:
        """`told` hears of so many entries more, now and then: the first time there may be many."""
        self._store = store
        self._told = told
        self.database = self._opened()
        try:
            self._catch_up()
        except sqlite3.DatabaseError:
            self.database.close()
            _remove(self._path)
            self.database = self._opened()
            self._catch_up()

    def __enter__(self) -> StatsCache:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.database.close()

    @property
    def _path(self) -> str:
        return os.path.join(cache_directory(), f"stats-{VERSION}-{self._store.journal_id}.sqlite")

    def _opened(self) -> sqlite3.Connection:
        try:
            return _prepared(self._path)
        except sqlite3.DatabaseError:
            _remove(self._path)
        except OSError:
            return _prepared(":memory:")  # no home to write to: read everything, keep nothing
        try:
            return _prepared(self._path)
        except (OSError, sqlite3.DatabaseError):
            return _prepared(":memory:")

    def _catch_up(self) -> None:
        """A page at a time: whoever is cut off goes on from there, and others get their turn."""
        while (read := self._read_page()) == PAGE:
            self._told(read)

    def _read_page(self) -> int:
        """How many entries it was."""
        self.database.execute("BEGIN IMMEDIATE")
        at = self._position()
        entries = self._behind(at)
        if entries is None:
            self.database.execute("DELETE FROM job")
            at, entries = BEGINNING, self._store.entries(None)
        last, place, before, read = None, at.place, None, 0
        for entry in islice(entries, PAGE):
            read += 1
            last, before, place = entry, place, entry.cursor
            for told in told_by(entry, self._store):
                self._keep(told)
        if last is not None:
            at = position_behind(last, before)
            self.database.execute("INSERT OR REPLACE INTO read VALUES (1, ?)", (json.dumps(at.as_dict()),))
        self.database.execute("COMMIT")
        return read

    def _position(self) -> Position:
        row = self.database.execute("SELECT position FROM read").fetchone()
        return BEGINNING if row is None else Position(**json.loads(row[0]))

    def _behind(self, at: Position) -> Iterator[Entry] | None:
        """What follows in the journal; None when the last entry that was read is not there any more."""
        if at.mark is None:
            return self._store.entries(None)
        try:
            entries = self._store.entries(at.before)
            last = next(entries, None)
        except ValueError:
            return None
        return entries if last is not None and mark_of(last) == at.mark else None

    def _keep(self, told: Told) -> None:
        if told.begins:
            self.database.execute(
                "INSERT OR REPLACE INTO job (job_id, label, agent, status, since, registered, ended, pending, running,"
                " attempts, losses, retries) VALUES (:job_id, :label, :agent, :status, :at, :registered, :ended,"
                " :pending, :running, :attempts, :losses, :retries)",
                told.as_dict(),
            )
            return
        # `max`: a clock that was set back must not make time run backwards.
        spent = "CASE status WHEN '{0}' THEN max(0, :at - since) ELSE 0 END"
        self.database.execute(
            f"UPDATE job SET pending = pending + {spent.format('pending')},"  # noqa: S608 - three fixed words
            f" waiting = waiting + {spent.format('waiting')}, running = running + {spent.format('running')},"
            " status = :status, since = max(since, :at),"
            " ended = CASE WHEN :ends THEN max(since, :at) ELSE ended END,"
            " attempts = attempts + :attempts, losses = losses + :losses, retries = retries + :retries,"
            " tokens = tokens + :tokens, cost = cost + :cost WHERE job_id = :job_id"
            if told.status is not None
            else "UPDATE job SET tokens = tokens + :tokens, cost = cost + :cost WHERE job_id = :job_id",
            told.as_dict(),
        )


def _prepared(path: str) -> sqlite3.Connection:
    if path != ":memory:":
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    database = sqlite3.connect(path, isolation_level=None, timeout=60)
    try:
        # A cache that a power cut takes is made anew: nothing here has to be synced.
        database.execute("PRAGMA synchronous = OFF")
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'job'").fetchone():
            with open(os.path.join(os.path.dirname(__file__), "cache.sql"), encoding="utf-8") as file:
                database.executescript(f"BEGIN IMMEDIATE; {file.read()} COMMIT;")
    except BaseException:
        database.close()
        raise
    return database


def _remove(path: str) -> None:
    for suffix in ("", "-journal"):
        try:
            os.unlink(path + suffix)
        except OSError:
            pass
