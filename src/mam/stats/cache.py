"""The cache of `mam stats`: a consumer of the journal.

It keeps a row for each job, and the sums of the jobs that ended on each day.

The position of the consumer is in the same database and the same transaction as the rows, so each entry counts once.
The cache is derived from the journal alone: one that is damaged, or of another journal, is rebuilt.
"""

from __future__ import annotations

import os
from itertools import islice

import apsw

from mam.config.file import cache_directory
from mam.stats.figures import jobs
from mam.stats.fold import transitions_in
from mam.stats.tally import DAY, KINDS, Tally
from mam.stores.consumer import Consumer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.stats.fold import JobTransition
    from mam.stores.port import Store

VERSION = 2
PAGE = 5_000
_BUSY_MS = 60_000


class StatsCache:
    """`with StatsCache(store) as cache:` up to date when it is opened."""

    def __init__(self, store: Store, progress: Callable[[int], None] = lambda _count: None) -> None:
        """`progress` gets the number of entries after each page: the first time there may be many."""
        self._progress = progress
        self._path = os.path.join(cache_directory(), f"stats-{VERSION}-{store.journal_id}.sqlite")
        self._consumer = Consumer(store, "stats", self)
        self.database = self._opened()
        try:
            self._catch_up()
        except apsw.Error:
            self.database.close()
            _remove(self._path)
            self.database = self._opened()
            self._catch_up()

    def __enter__(self) -> StatsCache:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.database.close()

    def position(self, consumer: str) -> str | None:
        rows = self.database.execute("SELECT position FROM consumer WHERE name = ?", (consumer,)).fetchall()
        return str(rows[0][0]) if rows else None

    def save_position(self, consumer: str, position: str) -> None:
        self.database.execute("INSERT OR REPLACE INTO consumer VALUES (?, ?)", (consumer, position))

    def _opened(self) -> apsw.Connection:
        try:
            return _prepared(self._path)
        except apsw.Error:
            _remove(self._path)
        except OSError:
            return _prepared(":memory:")  # no home to write to: read everything, keep nothing
        try:
            return _prepared(self._path)
        except (OSError, apsw.Error):
            return _prepared(":memory:")

    def _catch_up(self) -> None:
        """A page at a time: an interrupted one continues from there, and others get their turn."""
        while (read := self._read_page()) == PAGE:
            self._progress(read)

    def _read_page(self) -> int:
        """How many entries it was."""
        consumer, read = self._consumer, 0
        self.database.execute("BEGIN IMMEDIATE")
        consumer.load()
        if consumer.offset is None:
            self.database.execute("DELETE FROM job; DELETE FROM summary")
        changed: dict[tuple[str, int, str], Tally] = {}
        for entry in islice(consumer.entries(), PAGE):
            read += 1
            transitions = list(transitions_in(entry))
            if transitions:
                self._count(entry.job_id, changed, -1)
                for transition in transitions:
                    self._save(transition)
                self._count(entry.job_id, changed, 1)
            consumer.done(entry)
        for (kind, day, name), tally in changed.items():
            self.database.execute(
                "INSERT OR REPLACE INTO summary VALUES (?, ?, ?, ?)", (kind, day, name, tally.to_text())
            )
        consumer.save()
        self.database.execute("COMMIT")
        return read

    def _count(self, job_id: str, changed: dict[tuple[str, int, str], Tally], sign: int) -> None:
        """A job that has ended, into the tallies of its day or, before it changes, out of them."""
        for job in jobs(self.database, "job_id = ? AND ended IS NOT NULL", job_id):
            for kind in KINDS:
                of = kind, int(job["ended"]) // DAY, "" if kind == "all" else str(job[kind])
                if of not in changed:
                    changed[of] = self._tally(*of)
                changed[of].add(job, sign)

    def _tally(self, kind: str, day: int, name: str) -> Tally:
        words = "SELECT tally FROM summary WHERE kind = ? AND day = ? AND name = ?"
        rows = self.database.execute(words, (kind, day, name)).fetchall()
        return Tally(str(rows[0][0])) if rows else Tally()

    def _save(self, transition: JobTransition) -> None:
        if transition.begins:
            self.database.execute(
                "INSERT OR REPLACE INTO job (job_id, label, agent, status, since, registered, ended, pending, running,"
                " attempts, losses, retries) VALUES (:job_id, :label, :agent, :status, :at, :registered, :ended,"
                " :pending, :running, :attempts, :losses, :retries)",
                transition.as_dict(),
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
            if transition.status is not None
            else "UPDATE job SET tokens = tokens + :tokens, cost = cost + :cost WHERE job_id = :job_id",
            transition.as_dict(),
        )


def _prepared(path: str) -> apsw.Connection:
    if path != ":memory:":
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    database = apsw.Connection(path)
    try:
        database.set_busy_timeout(_BUSY_MS)
        # A cache that a power cut takes is rebuilt: nothing here has to be synced.
        database.execute("PRAGMA synchronous = OFF")
        if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'job'").fetchall():
            with open(os.path.join(os.path.dirname(__file__), "cache.sql"), encoding="utf-8") as file:
                database.execute(f"BEGIN IMMEDIATE; {file.read()} COMMIT;")
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
