"""How far the journal is durable, for those who follow it: one line that they can read without the registry's lock.

Whoever writes holds the lock until the last sync of an act, and a follower that asked for the lock would sleep on it,
and then keep the next writer from it. The line is written after each commit, which wakes the followers, and again when
the act is carried out. It is never synced: lost, torn or old it is not believed, since then it does not say exactly how
long the journal is.
"""

from __future__ import annotations

import os
from zlib import crc32

from mam.frozen import Frozen
from mam.stores.files.kept_open import KeptOpen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "journal.end"
IN_WORK = -1
"""In the place of the directory's time: an act is committed and not yet carried out, or somebody else was there."""

SIZE = 96


class Mark(Frozen):
    """The segment of the journal that is written to, where it ends, and the time that the directory shows."""

    first: int
    offset: int
    directory_ns: int

    def is_of(self, modified_ns: int) -> bool:
        """Whether nobody but mam has been in the directory since, as far as that can be told while somebody acts."""
        return self.directory_ns in (IN_WORK, modified_ns)


class MarkFile:
    """For those who write it. It stays open: all that is done between a commit and its followers delays the news."""

    def __init__(self, directory: str) -> None:
        self._file = KeptOpen(os.path.join(directory, NAME), os.O_WRONLY | os.O_CREAT)

    def prepared(self, mark: Mark) -> Callable[[], None]:
        """Writes it when it is called. What cannot be written is left out: without a mark the lock is asked."""
        text = b"%d %d %d" % (mark.first, mark.offset, mark.directory_ns)
        line = (b"%s %08x" % (text, crc32(text))).ljust(SIZE - 1) + b"\n"
        try:
            descriptor, _size = self._file.opened()
        except OSError:
            return lambda: None

        def write() -> None:
            try:
                os.pwrite(descriptor.number, line, 0)
            except OSError:
                pass

        return write


def parse_mark(line: bytes) -> Mark | None:
    """None for anything that is not whole."""
    text, _, checksum = line.rstrip().rpartition(b" ")
    if len(line) != SIZE or checksum != b"%08x" % crc32(text):
        return None
    first, offset, directory_ns = map(int, text.split())
    return Mark.of({"first": first, "offset": offset, "directory_ns": directory_ns})
