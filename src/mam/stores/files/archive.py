"""The archive of a files store: ended jobs that were moved out of the directory, in one database beside the journal.

A job goes there before its files are removed, so a crash between the two leaves it in both places, and then the files
count. Nothing else depends on it: a registry without an archive has no such file.
"""

from __future__ import annotations

import json
import os
import sys

try:
    from _sqlite3 import Connection, DatabaseError, connect
except ImportError:  # an interpreter that hides the C module
    from sqlite3 import Connection, DatabaseError, connect

from mam.errors import StoreUnavailable
from mam.jobs.record import parse_job
from mam.stores.files.book import ARCHIVE
from mam.stores.port import Kept
from mam.writing import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from mam.jobs.record import Job

PAGE = 500
_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS archive (
    job_id TEXT PRIMARY KEY, number INTEGER NOT NULL, key TEXT, retry_of TEXT,
    record TEXT NOT NULL, events TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS archive_number ON archive (number);
CREATE INDEX IF NOT EXISTS archive_key ON archive (key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS archive_retry_of ON archive (retry_of) WHERE retry_of IS NOT NULL;
COMMIT;
"""


class Archive:
    """`with Archive(home) as archive:`; for writing only under the registry's lock."""

    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, ARCHIVE)
        self._database: Connection | None = None

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def put(self, batch: Sequence[Kept]) -> None:
        """All of them or none, on the disk when this returns."""
        rows = [
            (kept.job.job_id, kept.job.number, kept.job.key, kept.job.retry_of, _text(kept.job.to_json()),
             _text(kept.events))
            for kept in batch
        ]  # fmt: skip
        try:
            database = self._made()
            database.execute("BEGIN IMMEDIATE")
            try:
                database.executemany("INSERT OR REPLACE INTO archive VALUES (?, ?, ?, ?, ?, ?)", rows)
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise
        except DatabaseError as error:
            raise self._unavailable(error) from None

    def get(self, job_id: str) -> Kept | None:
        return self._first("job_id = ?", job_id)

    def has(self, job_id: str) -> bool:
        return bool(self._all("SELECT 1 FROM archive WHERE job_id = ?", job_id))

    def with_key(self, key: str) -> Kept | None:
        return self._first("key = ?", key)

    def retry_of(self, job_id: str) -> Kept | None:
        return self._first("retry_of = ?", job_id)

    def newest(self, job_id: str) -> Job | None:
        """The last archived retry of an archived job."""
        found = self.get(job_id)
        while found is not None and (retry := self.retry_of(found.job.job_id)) is not None:
            found = retry
        return None if found is None else found.job

    def with_prefix(self, prefix: str, limit: int) -> list[str]:
        query = "SELECT job_id FROM archive WHERE job_id >= ? AND job_id < ? ORDER BY job_id LIMIT ?"
        return [row[0] for row in self._all(query, prefix, prefix + "\U0010ffff", limit)]

    def contents(self, *, newest_first: bool) -> Iterator[Kept]:
        place = sys.maxsize if newest_first else -1
        which = "number < ? ORDER BY number DESC" if newest_first else "number > ? ORDER BY number"
        query = f"SELECT number, record, events FROM archive WHERE {which} LIMIT ?"  # noqa: S608
        while rows := self._all(query, place, PAGE):
            for number, record, events in rows:
                place = number
                yield self._kept(record, events)

    def _first(self, condition: str, value: str) -> Kept | None:
        rows = self._all(f"SELECT record, events FROM archive WHERE {condition} LIMIT 1", value)  # noqa: S608
        return self._kept(*rows[0]) if rows else None

    def _kept(self, record: str, events: str) -> Kept:
        return Kept(job=parse_job(json.loads(record), self._path), events=json.loads(events))

    def _all(self, query: str, *values: object) -> list[Any]:
        if self._database is None and not os.path.exists(self._path):
            return []
        try:
            if not self._opened().execute("SELECT 1 FROM sqlite_master WHERE name = 'archive'").fetchall():
                return []  # whoever made the file did not live to make the table
            return self._opened().execute(query, values).fetchall()
        except DatabaseError as error:
            raise self._unavailable(error) from None

    def _made(self) -> Connection:
        if not os.path.exists(self._path):
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        database = self._opened()
        database.executescript(_SCHEMA)
        return database

    def _opened(self) -> Connection:
        if self._database is None:
            self._database = connect(self._path, isolation_level=None, timeout=10.0)
            self._database.execute("PRAGMA synchronous = FULL")
        return self._database

    def _unavailable(self, error: DatabaseError) -> StoreUnavailable:
        return StoreUnavailable(store=self._path, problem=" ".join(str(error).split()))  # SQLite may quote a schema


def _text(value: object) -> str:
    return to_bytes(value).decode()
