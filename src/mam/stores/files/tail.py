"""The end of the journal, for those who follow it without the lock: nearly always they lack one frame, or two.

Its files are kept open, since everything between a commit and its followers is on the way of the news.
"""

from __future__ import annotations

import os

from mam.stores.files.frames import unframe
from mam.stores.files.kept_open import KeptOpen
from mam.stores.files.mark import NAME, SIZE, parse_mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.files.kept_open import Descriptor
    from mam.stores.files.mark import Mark

LIMIT = 64 * 1024
_HEADER = 512


class Tail:
    def __init__(self, directory: str, journal: str) -> None:
        self._mark = KeptOpen(os.path.join(directory, NAME), os.O_RDONLY)
        self._journal = KeptOpen(os.path.join(directory, journal), os.O_RDONLY)
        self._known: tuple[Descriptor | None, int] = (None, 0)
        """The file that was read last, and the first entry in it."""

    def mark(self) -> Mark | None:
        """Where the journal ends, if the mark says exactly that."""
        try:
            descriptor, _size = self._mark.opened()
            mark = parse_mark(os.pread(descriptor.number, SIZE, 0))
            return mark if mark is not None and self._journal.opened()[1] == mark.offset else None
        except OSError:
            return None

    def read(self, first: int, begin: int, end: int) -> bytes | None:
        """The bytes in between, of the segment that begins with entry `first`; None when it is not that simple."""
        news = self._bytes(first, begin, end)
        return news if news is not None and len(news) == end - begin else None

    def beyond(self, first: int, begin: int) -> bytes | None:
        """All that is there, durable or not."""
        return self._bytes(first, begin, begin + LIMIT)

    def _bytes(self, first: int, begin: int, end: int) -> bytes | None:
        if not 0 < begin <= end <= begin + LIMIT:
            return None
        try:
            descriptor, _size = self._journal.opened()
            return os.pread(descriptor.number, end - begin, begin) if self._first_in(descriptor) == first else None
        except OSError:
            return None

    def _first_in(self, descriptor: Descriptor) -> int:
        known, first = self._known
        if known is not descriptor:
            header = unframe(os.pread(descriptor.number, _HEADER, 0).partition(b"\n")[0] + b"\n")
            first = int(header["first"]) if isinstance(header, dict) else 0
            self._known = (descriptor, first)
        return first
