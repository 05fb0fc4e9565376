"""What attempts leave behind, in dictionaries: the reference implementation of mam.stores.outputs."""

from __future__ import annotations

import hashlib
from threading import Lock

from mam.jobs.acts import check_latest_claim
from mam.stores.outputs import Piece, StoredFile, check_piece, in_order, is_dropped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.stores.outputs import AttemptId, OutputLimits
    from mam.stores.port import Store


class MemoryOutputs:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._pieces: dict[tuple[str, int], list[tuple[int, Piece]]] = {}
        self._files: dict[str, dict[tuple[int, str, str], tuple[int, StoredFile, bytes]]] = {}

    def append(self, attempt: AttemptId, piece: Piece, limits: OutputLimits) -> None:
        check_piece(piece)
        self._check(attempt)
        with self._lock:
            known = self._pieces.get((attempt.job_id, attempt.attempt), [])
            last = max([piece.end, *(old.end for _, old in known)])
            added = [*known, (self._now(), piece)]
            self._pieces[attempt.job_id, attempt.attempt] = [
                (at, one) for at, one in added if not is_dropped(one.start, one.end, last, limits)
            ]

    def read(self, job_id: str, attempt: int, since: int = 0) -> Iterator[Piece]:
        return in_order([piece for _, piece in self._pieces.get((job_id, attempt), [])], since)

    def put(self, attempt: AttemptId, kind: str, path: str, data: bytes, limits: OutputLimits) -> StoredFile:
        self._check(attempt)
        is_stored, digest = len(data) <= limits.file, hashlib.sha256(data).hexdigest()
        stored = StoredFile(
            attempt=attempt.attempt, kind=kind, path=path, size=len(data), sha256=digest, is_stored=is_stored
        )
        with self._lock:
            files = self._files.setdefault(attempt.job_id, {})
            files[attempt.attempt, kind, path] = (self._now(), stored, data)
        return stored

    def get(self, job_id: str, attempt: int, kind: str, path: str = "") -> bytes | None:
        found = self._files.get(job_id, {}).get((attempt, kind, path))
        return found[2] if found is not None and found[1].is_stored else None

    def files(self, job_id: str) -> list[StoredFile]:
        return [stored for _, (_, stored, _) in sorted(self._files.get(job_id, {}).items(), key=lambda item: item[0])]

    def expire(self, before_ms: int) -> int:
        with self._lock:
            before = self._count()
            self._pieces = {
                name: [(at, piece) for at, piece in pieces if at >= before_ms] for name, pieces in self._pieces.items()
            }
            self._files = {
                job_id: {name: file for name, file in files.items() if file[0] >= before_ms}
                for job_id, files in self._files.items()
            }
            return before - self._count()

    def _count(self) -> int:
        return sum(map(len, self._pieces.values())) + sum(map(len, self._files.values()))

    def _check(self, attempt: AttemptId) -> None:
        check_latest_claim(self._store.get(attempt.job_id), attempt.attempt, attempt.claim_id)

    def _now(self) -> int:
        return self._store.clock.now().wall_ms
