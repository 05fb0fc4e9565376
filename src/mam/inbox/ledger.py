"""What was claimed and not yet put away: one row for each, in `.queue/inbox.db`.

The row comes before the rename and carries the job's id. Whoever finds a file that was claimed finds the row, and with
it the one id under which it may be registered: a second try registers nothing. SQLite in its rollback mode, synced at
every commit, so that a power cut takes back whole rows or none. One holder of `.queue/lock` at a time changes anything;
the lock dies with its holder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

import apsw

from mam.errors import InboxTaken, StoreUnavailable
from mam.inbox.names import Target
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

CLAIMED, OPEN, SHOWN = "claimed", "open", "shown"
"""Named by a row, perhaps renamed, perhaps registered; a job that has not ended; ended, its outcome in the inbox."""
DATABASE, LOCK = "inbox.db", "lock"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS claim (
    job_id TEXT PRIMARY KEY, rel TEXT NOT NULL, inode INTEGER NOT NULL,
    owner TEXT NOT NULL, repo TEXT NOT NULL, branch TEXT NOT NULL,
    state TEXT NOT NULL, outcome TEXT NOT NULL DEFAULT '', shown_ms INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS claim_rel ON claim (rel);
CREATE INDEX IF NOT EXISTS claim_state ON claim (state);
CREATE TABLE IF NOT EXISTS belonging (one INTEGER PRIMARY KEY CHECK (one = 1), journal TEXT, store TEXT);
"""
_LOCK_MS = 60_000


class Claim(Frozen):
    job_id: str
    rel: str
    """The prompt file, as it was dropped."""
    inode: int
    owner: str
    repo: str
    branch: str
    state: str = CLAIMED
    outcome: str = ""
    """Of a shown one: the name of the file that tells it, below the inbox."""
    shown_ms: int = 0
    refused: int = 0
    """1 when it could not become a job."""

    @property
    def target(self) -> Target:
        return Target(owner=self.owner, repo=self.repo, branch=self.branch)


class Ledger:
    def __init__(self, directory: str) -> None:
        self._directory = directory
        path = os.path.join(directory, DATABASE)
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            self._database = _connected(path, apsw.SQLITE_OPEN_READWRITE)
            for words in ("PRAGMA journal_mode = TRUNCATE", "PRAGMA synchronous = FULL", _SCHEMA):
                self._database.execute(words).fetchall()
        except (apsw.Error, OSError) as error:
            raise _unavailable(path, error) from None

    @classmethod
    def for_reading(cls, directory: str) -> list[Claim]:
        """All rows, without making or changing anything; none where there is no ledger."""
        path = os.path.join(directory, DATABASE)
        if not os.path.exists(path):
            return []
        try:
            database = _connected(path, apsw.SQLITE_OPEN_READONLY)
            with contextlib.closing(database):
                rows = database.execute("SELECT * FROM claim ORDER BY job_id").fetchall()
        except apsw.Error as error:
            raise _unavailable(path, error) from None
        return [Claim.of(dict(zip(Claim.field_names, row, strict=True))) for row in rows]

    @classmethod
    def store_of(cls, directory: str) -> str | None:
        """The address of the store that an inbox belongs to; None when it belongs to none yet."""
        path = os.path.join(directory, DATABASE)
        if not os.path.exists(path):
            return None
        try:
            database = _connected(path, apsw.SQLITE_OPEN_READONLY)
            with contextlib.closing(database):
                found = database.execute("SELECT store FROM belonging").fetchall()
        except apsw.Error:
            return None
        return str(found[0][0]) if found else None

    def close(self) -> None:
        self._database.close()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        path = os.path.join(self._directory, LOCK)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def belong(self, journal_id: str, store: str, root: str) -> bool:
        """A claim means something only in the store that it was made for. Whether the ledger is a new one."""
        with self.locked():
            found = self._all("SELECT journal, store FROM belonging")
            if not found:
                self._change([("INSERT INTO belonging VALUES (1, ?, ?)", (journal_id, store))])
            elif found[0][0] != journal_id:
                page = os.path.join(self._directory, DATABASE)
                raise InboxTaken(root=root, store=found[0][1], other=store, page=page)
            return not found

    # -- rows ------------------------------------------------------------------------------------------------------

    def add(self, claims: Iterable[Claim]) -> None:
        words = "INSERT INTO claim VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self._change([(words, tuple(claim.as_dict().values())) for claim in claims])

    def put(self, claims: Iterable[Claim]) -> None:
        words = "UPDATE claim SET state = ?, outcome = ?, shown_ms = ?, refused = ? WHERE job_id = ?"
        self._change([(words, (c.state, c.outcome, c.shown_ms, c.refused, c.job_id)) for c in claims])

    def remove(self, job_ids: Iterable[str]) -> None:
        self._change([("DELETE FROM claim WHERE job_id = ?", (job_id,)) for job_id in job_ids])

    def claims(self, *states: str) -> list[Claim]:
        words = "SELECT * FROM claim WHERE state = ? ORDER BY job_id"
        rows = [row for state in states for row in self._all(words, (state,))]
        return [Claim.of(dict(zip(Claim.field_names, row, strict=True))) for row in rows]

    def holds(self, rel: str) -> bool:
        """Whether a file of this name is claimed, so that the next one has to wait."""
        return bool(self._all("SELECT 1 FROM claim WHERE rel = ? AND state IN ('claimed', 'open')", (rel,)))

    def version(self) -> int:
        """Another number whenever another process has changed something."""
        return int(self._all("PRAGMA data_version")[0][0])

    def _all(self, words: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._database.execute(words, values).fetchall()
        except apsw.Error as error:
            raise _unavailable(os.path.join(self._directory, DATABASE), error) from None

    def _change(self, acts: list[tuple[str, tuple[object, ...]]]) -> None:
        """All of them or none, and on the disk when it returns."""
        if not acts:
            return
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                for words, values in acts:
                    self._database.execute(words, values)
                self._database.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(apsw.Error):
                    self._database.execute("ROLLBACK")
                raise
        except apsw.Error as error:
            raise _unavailable(os.path.join(self._directory, DATABASE), error) from None


def _connected(path: str, flags: int) -> apsw.Connection:
    database = apsw.Connection(path, flags=flags)
    database.set_busy_timeout(_LOCK_MS)
    return database


def _unavailable(path: str, error: Exception) -> StoreUnavailable:
    return StoreUnavailable(store=path, problem=getattr(error, "strerror", None) or str(error))
