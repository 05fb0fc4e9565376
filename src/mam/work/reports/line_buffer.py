"""Splits a stream of bytes into lines, in bounded memory."""

from __future__ import annotations

import re

LINE_LIMIT = 8 << 20
"""In a longer line, long strings are shortened while it comes. A line that is still too long is skipped."""

KEPT = 1 << 20
"""At least this many bytes of a long string are kept, its last ones. Enough for a report's result even if all are
escapes."""

_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)


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
        """The lines that are complete now, without their line ends."""
        *whole, rest = data.split(b"\n")
        found = [line for piece in whole if (line := self._ended(piece)) is not None]
        self._add(rest)
        return found

    def rest(self) -> bytes:
        """The bytes after the last line end; the last line may lack one and still be complete."""
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


class LineShortener:
    """Each string keeps at most twice `kept` bytes; the caller limits the rest by `size`."""

    def __init__(self, kept: int = KEPT) -> None:
        self._limit = kept
        self._line = bytearray()
        self._text: bytearray | None = None
        """The part of the string that is not closed yet."""
        self._escape = b""
        """A backslash whose second character has not come yet."""

    @property
    def size(self) -> int:
        return len(self._line) + len(self._text or b"")

    def add(self, data: bytes) -> None:
        data, self._escape, at = self._escape + data, b"", 0
        while at < len(data):
            at = self._outside(data, at) if self._text is None else self._inside(data, at, self._text)

    def line(self) -> bytes:
        return bytes(self._line + (self._text or b"") + self._escape)

    def _outside(self, data: bytes, at: int) -> int:
        quote = data.find(b'"', at)
        end = len(data) if quote < 0 else quote + 1
        self._line += data[at:end]
        if quote >= 0:
            self._text = bytearray()
        return end

    def _inside(self, data: bytes, at: int, text: bytearray) -> int:
        found = _INSIDE.match(data, at)
        end = at if found is None else found.end()
        text += data[at:end]
        if len(text) > 2 * self._limit:
            del text[: _safe_cut(text, len(text) - self._limit)]
        if end == len(data):
            return end
        if data[end : end + 1] == b"\\":
            self._escape = data[end:]
            return len(data)
        self._line += text + b'"'
        self._text = None
        return end + 1


def _safe_cut(text: bytearray, at: int) -> int:
    """The next position that is neither inside an escape nor inside a UTF-8 character."""
    before = text[:at]
    if (len(before) - len(before.rstrip(b"\\"))) % 2:
        at += 1
    while at < len(text) and text[at] & 0xC0 == 0x80:
        at += 1
    return at
