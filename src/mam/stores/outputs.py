"""The port for what an attempt leaves behind: its output in pieces, its diff and its artifacts.

Every user of the store can read them, on any host. A write names its attempt (`AttemptId`): the store accepts it
until a newer claim takes the job (`mam.jobs.acts.check_latest_claim`), so an attempt that was cancelled may still add
its last words. `mam.testing.conformance.outputs` tests these promises.
"""

from __future__ import annotations

from mam.errors import BadInput
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

PIECE_LIMIT = 1 << 18
"""The most bytes of one piece."""

DIFF, ARTIFACT = "diff", "artifact"
"""The kinds of files."""


class AttemptId(Frozen):
    """The fence of a write."""

    job_id: str
    attempt: int
    claim_id: str | None


class OutputLimits(Frozen):
    """How many bytes a store keeps: of the output its beginning and its end, and of a file all or nothing."""

    head: int = 4 << 20
    tail: int = 4 << 20
    file: int = 4 << 20


class Piece(Frozen):
    start: int
    """The offset of the first byte in the whole output."""
    data: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class StoredFile(Frozen):
    """A file that an attempt left. `path` is its name in the job's directory; that of a diff is empty."""

    attempt: int
    kind: str
    path: str
    size: int
    sha256: str
    is_stored: bool
    """False if it is above the limit: then only these facts are stored."""


if TYPE_CHECKING:

    class Outputs(Protocol):
        """What `store.outputs` returns."""

        def append(self, attempt: AttemptId, piece: Piece, limits: OutputLimits) -> None:
            """Add a piece of at most PIECE_LIMIT bytes. A repeat, whole or in part, changes nothing.

            A gap before it is allowed: the log may have lost bytes, and a sender skips what would be dropped. Raises
            ClaimLost when a newer claim holds the job, UnknownJob when there is no such job.
            """

        def read(self, job_id: str, attempt: int, since: int = 0) -> Iterator[Piece]:
            """The output from byte `since` on, in order and without overlaps. A gap shows in `Piece.start`."""

        def put(self, attempt: AttemptId, kind: str, path: str, data: bytes, limits: OutputLimits) -> StoredFile:
            """Store a file, addressed by its content; it replaces an earlier one of this attempt, kind and path.

            Durable when it returns. Raises as `append`.
            """

        def get(self, job_id: str, attempt: int, kind: str, path: str = "") -> bytes | None:
            """The content of a file; None if there is none, it was above the limit, or its time is over."""

        def files(self, job_id: str) -> list[StoredFile]:
            """The files of all attempts, in the order of attempt, kind and path."""

        def expire(self, before_ms: int) -> int:
            """Remove what was stored before this time. Returns how many pieces and files it removed."""


def in_order(pieces: list[Piece], since: int) -> Iterator[Piece]:
    """The pieces from byte `since` on, cut where they overlap."""
    position = since
    for piece in sorted(pieces, key=lambda one: one.start):
        if piece.end > position:
            cut = max(0, position - piece.start)
            yield Piece(start=piece.start + cut, data=piece.data[cut:])
            position = piece.end


def check_piece(piece: Piece) -> None:
    if piece.start < 0 or len(piece.data) > PIECE_LIMIT:
        raise BadInput(why=f"a piece of output has at most {PIECE_LIMIT:,} bytes, not {len(piece.data):,}")


def is_dropped(start: int, end: int, last: int, limits: OutputLimits) -> bool:
    """Whether a piece is neither in the beginning nor in the end of an output of `last` bytes."""
    return start >= limits.head and end <= last - limits.tail
