"""A stream of bytes as lines, in bounded memory, whatever comes."""

from __future__ import annotations

LINE_LIMIT = 8 << 20
"""A longer line is left out: agents put whole files into one, and nothing that counts needs so much."""


class Lines:
    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
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
        rest, self._parts, self._size = b"".join(self._parts), [], 0
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
        self._parts.append(piece)
        self._size += len(piece)
        if self._size > self._limit:
            self._parts, self._size = [], 0
            self._skipping = True
            self.left_out += 1
