"""A small file of a store that one process looks into again and again, without opening it each time."""

from __future__ import annotations

import os

from mam.writing import close_quietly

_SAFELY = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Descriptor:
    """Closed when the last one who uses it lets go of it: a thread may be reading while another one opens anew, and
    the number must not become another file's under its hands."""

    def __init__(self, number: int) -> None:
        self.number = number
        found = os.fstat(number)
        self.file = (found.st_dev, found.st_ino)

    def __del__(self) -> None:
        close_quietly(self.number)


class KeptOpen:
    """Always the file that has the name now, which may have been removed, rotated or replaced meanwhile."""

    def __init__(self, path: str, flags: int) -> None:
        self._path = path
        self._flags = flags | _SAFELY
        self._descriptor: Descriptor | None = None

    def opened(self) -> tuple[Descriptor, int]:
        """The file and its size, or an OSError."""
        descriptor = self._descriptor
        try:
            there = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            descriptor = None
        if descriptor is None or descriptor.file != (there.st_dev, there.st_ino):
            descriptor = self._descriptor = Descriptor(os.open(self._path, self._flags, 0o600))
            there = os.fstat(descriptor.number)
        return descriptor, there.st_size
