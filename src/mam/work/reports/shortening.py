"""A line of JSON that is too long to be kept: each long text in it is reduced to its end, while the line comes.

An agent's last message may be of any length, and its end is what a report keeps.
"""

from __future__ import annotations

import re

KEPT = 1 << 20
"""Bytes of a long text that are kept at least, its last ones. As many escapes make more than a report's result."""

_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)


class LineShortener:
    """Each text has at most twice `kept` bytes; who calls bounds the rest by `size`."""

    def __init__(self, kept: int = KEPT) -> None:
        self._limit = kept
        self._line = bytearray()
        self._text: bytearray | None = None
        """What has come of the text that is not closed yet."""
        self._escape = b""
        """A backslash whose other half has not come."""

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
    """The next place that is neither within an escape nor within a character of UTF-8."""
    before = text[:at]
    if (len(before) - len(before.rstrip(b"\\"))) % 2:
        at += 1
    while at < len(text) and text[at] & 0xC0 == 0x80:
        at += 1
    return at
