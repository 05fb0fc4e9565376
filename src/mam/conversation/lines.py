"""Splits a stream of bytes into lines in bounded memory. It loses none: it counts what it omits of a very long line."""

from __future__ import annotations

from mam.util.frozen import Frozen
from mam.work.reports.line_buffer import LineShortener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_LIMIT = 1 << 20
"""Of a longer line of JSON, long texts are shortened to their ends; any other longer line is cut."""
KEPT = 64 << 10


class RawLine(Frozen):
    data: bytes
    left_out: int = 0
    """Bytes of the line that `data` does not contain."""


class LineSplitter:
    def __init__(self, limit: int = LINE_LIMIT, kept: int = KEPT) -> None:
        self._limit = limit
        self._kept = kept
        self._parts: list[bytes] = []
        self._size = 0
        self._shortened: LineShortener | None = None
        self._cut: bytes | None = None
        """The beginning of a line that is too long."""

    def feed(self, data: bytes) -> Iterator[RawLine]:
        """The lines that are complete now, without their line ends."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            if not self._size and len(piece) <= self._limit:
                yield RawLine.from_fields({"data": piece, "left_out": 0})
                continue
            self._add(piece)
            yield self._take()
        self._add(rest)

    def rest(self) -> RawLine | None:
        """The text after the last line end."""
        return self._take() if self._size else None

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._cut is not None:
            return
        if self._shortened is not None:
            self._shortened.add(piece)
        elif piece:
            self._parts.append(piece)
            if self._size <= self._limit:
                return
            self._shorten()
        if self._shortened is not None and self._shortened.size > 4 * self._limit:
            self._cut, self._shortened = self._shortened.line()[: self._kept], None

    def _shorten(self) -> None:
        begun, self._parts = b"".join(self._parts), []
        if begun.lstrip()[:1] == b"{":
            self._shortened = LineShortener(self._kept)
            self._shortened.add(begun)
        else:
            self._cut = begun[: self._kept]

    def _take(self) -> RawLine:
        data = self._cut
        if data is None:
            data = b"".join(self._parts) if self._shortened is None else self._shortened.line()
        line = RawLine(data=data, left_out=max(0, self._size - len(data)))
        self._parts, self._size, self._shortened, self._cut = [], 0, None, None
        return line
