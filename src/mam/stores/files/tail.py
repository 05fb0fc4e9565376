"""The end of the journal, for those who follow it without the lock: nearly always they lack one frame, or two.

Its files are kept open, since everything between a commit and its followers is on the way of the news.
"""

from __future__ import annotations

import os

from mam.stores.files.frames import unframe
from mam.stores.files.mark import NAME, SIZE, parse_mark
from mam.writing import close_quietly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.files.mark import Mark

LIMIT = 64 * 1024
_HEADER = 512
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Tail:
    def __init__(self, directory: str, journal: str) -> None:
        self._mark = _KeptOpen(os.path.join(directory, NAME))
        self._journal = _KeptOpen(os.path.join(directory, journal))
        self._known: tuple[_Descriptor | None, int] = (None, 0)
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
        if not 0 < begin <= end <= begin + LIMIT:
            return None
        try:
            descriptor, _size = self._journal.opened()
            if self._first_in(descriptor) != first:
                return None
            news = os.pread(descriptor.number, end - begin, begin)
        except OSError:
            return None
        return news if len(news) == end - begin else None

    def _first_in(self, descriptor: _Descriptor) -> int:
        known, first = self._known
        if known is not descriptor:
            header = unframe(os.pread(descriptor.number, _HEADER, 0).partition(b"\n")[0] + b"\n")
            first = int(header["first"]) if isinstance(header, dict) else 0
            self._known = (descriptor, first)
        return first


class _Descriptor:
    """Closed when the last one who uses it lets go of it: a thread may be reading while another one opens anew, and
    the number must not become another file's under its hands."""

    def __init__(self, number: int) -> None:
        self.number = number
        found = os.fstat(number)
        self.file = (found.st_dev, found.st_ino)

    def __del__(self) -> None:
        close_quietly(self.number)


class _KeptOpen:
    """Always the file that has the name now, which may have been removed, rotated or replaced meanwhile."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: _Descriptor | None = None

    def opened(self) -> tuple[_Descriptor, int]:
        """The file and its size, or an OSError."""
        descriptor = self._descriptor
        there = os.stat(self._path, follow_symlinks=False)
        if descriptor is None or descriptor.file != (there.st_dev, there.st_ino):
            descriptor = self._descriptor = _Descriptor(os.open(self._path, _READ))
            there = os.fstat(descriptor.number)
        return descriptor, there.st_size
