"""What attempts leave behind, in three tables. Each write is one statement that locks the row of its job."""

from __future__ import annotations

import hashlib

from mam.jobs.acts import check_latest_claim
from mam.stores.outputs import Piece, StoredFile, check_piece, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from mam.jobs.record import Json
    from mam.stores.outputs import AttemptId, OutputLimits
    from mam.stores.port import Store

_PAGE = 16
"""Pieces of one answer: 4 MiB at most."""
_EXPIRED_AT_ONCE = 1000


class PostgresOutputs:
    """The port (mam.stores.outputs)."""

    def __init__(self, store: Store, rows: Callable[..., list[Any]], now_ms: Callable[[], int | None]) -> None:
        self._store = store
        self._rows = rows
        self._now_ms = now_ms

    def append(self, attempt: AttemptId, piece: Piece, limits: OutputLimits) -> None:
        check_piece(piece)
        values = {"start": piece.start, "data": piece.data, "head": limits.head, "keep_from": piece.end - limits.tail}
        self._write("append output", attempt, values)

    def read(self, job_id: str, attempt: int, since: int = 0) -> Iterator[Piece]:
        after, position = -1, since
        while found := self._pieces(job_id, attempt, position, after):
            after = found[-1].start
            for piece in in_order(found, position):
                position = piece.end
                yield piece

    def _pieces(self, job_id: str, attempt: int, since: int, after: int) -> list[Piece]:
        rows = self._rows("output", job_id=job_id, attempt=attempt, since=since, after=after, limit=_PAGE)
        return [Piece(start=start, data=data) for start, data in rows]

    def put(self, attempt: AttemptId, kind: str, path: str, data: bytes, limits: OutputLimits) -> StoredFile:
        stored = StoredFile(
            attempt=attempt.attempt,
            kind=kind,
            path=path,
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            is_stored=len(data) <= limits.file,
        )
        self._write("put output file", attempt, {**stored.as_dict(), "data": data if stored.is_stored else b""})
        return stored

    def get(self, job_id: str, attempt: int, kind: str, path: str = "") -> bytes | None:
        rows = self._rows("output file", job_id=job_id, attempt=attempt, kind=kind, path=path)
        return bytes(rows[0][0]) if rows else None

    def files(self, job_id: str) -> list[StoredFile]:
        names = ("attempt", "kind", "path", "size", "sha256", "is_stored")
        return [StoredFile(**dict(zip(names, row, strict=True))) for row in self._rows("output files", job_id=job_id)]

    def expire(self, before_ms: int) -> int:
        removed = 0
        while gone := len(self._rows("expire output pieces", before=before_ms, limit=_EXPIRED_AT_ONCE)):
            removed += gone
        files = self._rows("expire output files", before=before_ms)
        self._rows("expire output contents", before=before_ms)
        return removed + len(files)

    def _write(self, query: str, attempt: AttemptId, values: Json) -> None:
        """A write that found no such claim explains why. Each write may be repeated."""
        while not self._rows(query, **{**values, **attempt.as_dict()}, now_ms=self._now_ms()):
            check_latest_claim(self._store.get(attempt.job_id), attempt.attempt, attempt.claim_id)
