"""How far the audit log has copied one journal.

The place is kept without a sync, and so are the lines it speaks of: after a power cut it may be ahead of them. So it
remembers a second place, one so old that the kernel has long written everything before it, and begins there again
when the machine has been restarted since. Lines that did survive are recognised and not written twice.
"""

from __future__ import annotations

import os
import time
from zlib import crc32

from mam.audit.log import parse_line
from mam.audit.writing import to_bytes, write_all
from mam.clock import boot_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SETTLED_SECONDS = 120.0
"""Linux writes changed pages back after about 35 seconds; older ones are on the disk."""

_LOOKS = 20
_SIZE_LIMIT = 64 * 1024
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_WRITE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Cursor:
    """`with Cursor(root, journal_id) as cursor:` where the copy ends; for the holder of the log's lock."""

    def __init__(self, root: int, journal_id: str) -> None:
        self._descriptor = os.open(_file(journal_id), _WRITE, 0o600, dir_fd=root)
        self._state = _restored(_read(self._descriptor))
        self.behind: dict[str, str | None] = self._state["behind"]
        """Jobs whose directory refused lines, and from where on they may lack some; the others go on meanwhile."""

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._descriptor)

    @property
    def place(self) -> str | None:
        """Where to read on in the journal."""
        place: str | None = self._state["place"]
        return place

    @property
    def number(self) -> int:
        """The last entry that was copied: what tells a batch that others have copied meanwhile from a fresh one."""
        number: int = self._state["number"]
        return number

    def save(self, place: str | None, number: int) -> None:
        """In one write over the old text: a killed writer leaves the old place or the new one."""
        now = time.monotonic()
        if place != self.place and now - self._state["marked_at"] >= SETTLED_SECONDS:
            self._state.update(settled=self._state["marked"], marked=self.place, marked_at=now)
        self._state.update(place=place, number=number)
        text = to_bytes(self._state)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        # The rest of a longer old text stays behind the newline, where nobody reads.
        write_all(self._descriptor, b"%08x %s\n" % (crc32(text), text))


class Glimpse:
    """What the cursor said a moment ago, for those who read the journal before they take the lock."""

    def __init__(self, logs_dir: str, journal_id: str) -> None:
        state = _restored(_glimpsed(os.path.join(logs_dir, _file(journal_id))))
        self.place: str | None = state["place"]
        self.number: int = state["number"]
        self.behind: dict[str, str | None] = state["behind"]


def _file(journal_id: str) -> str:
    return f".cursor-{journal_id}"


def _glimpsed(path: str) -> dict[str, Any] | None:
    """A reader without the lock may meet a writer in the middle of its write, and looks again."""
    try:
        descriptor = os.open(path, _READ)
    except FileNotFoundError:
        return None
    try:
        for _ in range(_LOOKS):
            saved = _read(descriptor)
            if saved is not None:
                return saved
    finally:
        os.close(descriptor)
    return None


def _read(descriptor: int) -> dict[str, Any] | None:
    line = os.pread(descriptor, _SIZE_LIMIT, 0).partition(b"\n")[0]
    checksum, _, text = line.partition(b" ")
    return parse_line(text) if checksum == b"%08x" % crc32(text) else None


def _restored(saved: dict[str, Any] | None) -> dict[str, Any]:
    """What was saved; from the beginning, where nothing can be missed, if there is nothing whole."""
    if saved is None:
        return _begun(None, {})
    if saved["boot"] != boot_id():
        return _begun(saved["settled"], saved["behind"])
    return saved


def _begun(place: str | None, behind: dict[str, str | None]) -> dict[str, Any]:
    return {
        "place": place,
        "number": 0,
        "boot": boot_id(),
        "settled": place,
        "marked": place,
        "marked_at": time.monotonic(),
        "behind": behind,
    }
