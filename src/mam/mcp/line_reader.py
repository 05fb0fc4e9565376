"""Cuts what a client sends into lines."""

from __future__ import annotations

from mam.mcp.messages import MESSAGE_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class LineReader:
    """Cuts bytes into lines. Of a line that is too long it keeps nothing and yields None."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._skips = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._add(piece)
            yield from self.rest()
        self._add(rest)

    def rest(self) -> Iterator[bytes | None]:
        """The line as it is now: complete, or the last one of the input."""
        line = None if self._skips else b"".join(self._parts)
        if self._skips or line:
            self._parts, self._size, self._skips = [], 0, False
            yield line

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > MESSAGE_LIMIT:
            self._parts, self._skips = [], True
        elif not self._skips:
            self._parts.append(piece)
