"""The ledger of an inbox: one row for each file that mam has taken and not yet archived, in `.queue/inbox.db`.

A row is written before the rename and holds the job's id. After a crash, mam finds the row and registers the file under
that id only, so a second attempt registers nothing. SQLite uses a rollback journal and syncs every commit. Only the
holder of `.queue/lock` writes; the kernel releases the lock when the holder ends.
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
"""claimed: has a row, may be renamed or registered; open: its job has not ended; shown: its outcome is in the inbox."""
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


class LedgerRow(Frozen):
    job_id: str
    rel: str
    """The path of the prompt file below the inbox, as it was dropped."""
    inode: int
    owner: str
    repo: str
    branch: str
    state: str = CLAIMED
    outcome: str = ""
    """For a shown row: the path of the outcome file below the inbox."""
    shown_ms: int = 0
    refused: int = 0
    """1 if the file could not become a job."""

    @property
    def target(self) -> Target:
        return Target(owner=self.owner, repo=self.repo, branch=self.branch)


class Ledger:
    def __init__(self, directory: str) -> None:
        self._directory = directory
        path = os.path.join(directory, DATABASE)
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            self._database = _connect(path, apsw.SQLITE_OPEN_READWRITE)
            for sql in ("PRAGMA journal_mode = TRUNCATE", "PRAGMA synchronous = FULL", _SCHEMA):
                self._database.execute(sql).fetchall()
        except (apsw.Error, OSError) as error:
            raise _unavailable(path, error) from None

    @classmethod
    def read_rows(cls, directory: str) -> list[LedgerRow]:
        """All rows, read without creating or changing anything; empty if there is no ledger."""
        path = os.path.join(directory, DATABASE)
        if not os.path.exists(path):
            return []
        try:
            database = _connect(path, apsw.SQLITE_OPEN_READONLY)
            with contextlib.closing(database):
                rows = database.execute("SELECT * FROM claim ORDER BY job_id").fetchall()
        except apsw.Error as error:
            raise _unavailable(path, error) from None
        return [LedgerRow.from_fields(dict(zip(LedgerRow.field_names, row, strict=True))) for row in rows]

    @classmethod
    def bound_store(cls, directory: str) -> str | None:
        """The address of the store that the inbox is bound to; None if it is not bound yet."""
        path = os.path.join(directory, DATABASE)
        if not os.path.exists(path):
            return None
        try:
            database = _connect(path, apsw.SQLITE_OPEN_READONLY)
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

    def bind_store(self, journal_id: str, store: str, root: str) -> bool:
        """Bind the ledger to one store: its rows are valid there only. Returns whether the ledger is new."""
        with self.locked():
            found = self._fetch("SELECT journal, store FROM belonging")
            if not found:
                self._execute([("INSERT INTO belonging VALUES (1, ?, ?)", (journal_id, store))])
            elif found[0][0] != journal_id:
                page = os.path.join(self._directory, DATABASE)
                raise InboxTaken(root=root, store=found[0][1], other=store, page=page)
            return not found

    # -- rows ------------------------------------------------------------------------------------------------------

    def add(self, rows: Iterable[LedgerRow]) -> None:
        sql = "INSERT INTO claim VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self._execute([(sql, tuple(row.as_dict().values())) for row in rows])

    def update(self, rows: Iterable[LedgerRow]) -> None:
        sql = "UPDATE claim SET state = ?, outcome = ?, shown_ms = ?, refused = ? WHERE job_id = ?"
        self._execute([(sql, (c.state, c.outcome, c.shown_ms, c.refused, c.job_id)) for c in rows])

    def remove(self, job_ids: Iterable[str]) -> None:
        self._execute([("DELETE FROM claim WHERE job_id = ?", (job_id,)) for job_id in job_ids])

    def rows(self, *states: str) -> list[LedgerRow]:
        sql = "SELECT * FROM claim WHERE state = ? ORDER BY job_id"
        rows = [row for state in states for row in self._fetch(sql, (state,))]
        return [LedgerRow.from_fields(dict(zip(LedgerRow.field_names, row, strict=True))) for row in rows]

    def has_active(self, rel: str) -> bool:
        """Whether a file of this name is being processed, so that the next one has to wait."""
        return bool(self._fetch("SELECT 1 FROM claim WHERE rel = ? AND state IN ('claimed', 'open')", (rel,)))

    def version(self) -> int:
        """Changes whenever another process has written to the ledger."""
        return int(self._fetch("PRAGMA data_version")[0][0])

    def _fetch(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._database.execute(sql, values).fetchall()
        except apsw.Error as error:
            raise _unavailable(os.path.join(self._directory, DATABASE), error) from None

    def _execute(self, statements: list[tuple[str, tuple[object, ...]]]) -> None:
        """Run all statements in one durable transaction."""
        if not statements:
            return
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                for sql, values in statements:
                    self._database.execute(sql, values)
                self._database.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(apsw.Error):
                    self._database.execute("ROLLBACK")
                raise
        except apsw.Error as error:
            raise _unavailable(os.path.join(self._directory, DATABASE), error) from None


def _connect(path: str, flags: int) -> apsw.Connection:
    database = apsw.Connection(path, flags=flags)
    database.set_busy_timeout(_LOCK_MS)
    return database


def _unavailable(path: str, error: Exception) -> StoreUnavailable:
    return StoreUnavailable(store=path, problem=getattr(error, "strerror", None) or str(error))
