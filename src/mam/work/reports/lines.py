"""A stream of bytes as lines, in bounded memory, whatever comes."""

from __future__ import annotations

from mam.work.reports.shortening import LineShortener

LINE_LIMIT = 8 << 20
"""Of a longer line the long texts are shortened as it comes. One that is too long even so is left out."""


class LineBuffer:
    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._shortened: LineShortener | None = None
        self._skipping = False
        self.left_out = 0
        """Lines that were too long."""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now, without their ends."""
        *whole, rest = data.split(b"\n")
        found = [line for piece in whole if (line := self._ended(piece)) is not None]
        self._add(rest)
        return found

    def rest(self) -> bytes:
        """What came after the last end of a line; a last line may lack it and be whole all the same."""
        rest = b"".join(self._parts) if self._shortened is None else self._shortened.line()
        self._forget()
        self._skipping = False
        return rest

    def _ended(self, piece: bytes) -> bytes | None:
        self._add(piece)
        if self._skipping:
            self._skipping = False
            return None
        return self.rest()

    def _add(self, piece: bytes) -> None:
        if self._skipping:
            return
        if self._shortened is None:
            self._parts.append(piece)
            self._size += len(piece)
            if self._size <= self._limit:
                return
            pieces, self._parts, self._shortened = self._parts, [], LineShortener()
        else:
            pieces = [piece]
        for one in pieces:
            self._shortened.add(one)
        if self._shortened.size > self._limit:
            self._forget()
            self._skipping = True
            self.left_out += 1

    def _forget(self) -> None:
        self._parts, self._size, self._shortened = [], 0, None
