"""How far the audit log has copied one journal.

The place is kept without a sync, and so are the lines it speaks of: after a power cut it may be ahead of them. So it
remembers a second place, one so old that the kernel has long written everything before it, and begins there again
when the machine has been restarted since. Lines that did survive are recognised and not written twice.

A registry that was restored from a backup has the same journal with another end. So every place comes with a mark of
the entry before it: when the journal says something else there, the copy begins again from the journal's beginning.
"""

from __future__ import annotations

import os
import time
from zlib import crc32

from mam.audit.log import parse_line
from mam.clock import boot_id
from mam.frozen import Frozen
from mam.writing import to_bytes, to_log_bytes, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.stores.port import Entry

SETTLED_SECONDS = 120.0
"""Linux writes changed pages back after about 35 seconds; older ones are on the disk."""

FORMAT = 2

_LOOKS = 20
_SIZE_LIMIT = 64 * 1024
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_WRITE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Position(Frozen):
    """Behind one entry of the journal."""

    place: str | None
    """Where to read on; None at the beginning."""
    number: int
    """The entry's own number."""
    mark: int | None
    """What the entry said, as a checksum."""
    before: str | None
    """Where the entry can be read again."""

    def is_same(self, other: Position) -> bool:
        return (self.number, self.mark) == (other.number, other.mark)


BEGINNING = Position(place=None, number=0, mark=None, before=None)


def position_behind(entry: Entry, before: str | None) -> Position:
    return Position(place=entry.cursor, number=entry.number, mark=mark_of(entry), before=before)


def mark_of(entry: Entry) -> int:
    """Without the prompt, which may be a megabyte and tells nothing that the rest does not."""
    fields = {name: value for name, value in (entry.fields or {}).items() if name != "prompt"}
    return crc32(to_log_bytes([entry.number, entry.job_id, fields, entry.lines]))


class Cursor:
    """`with Cursor(root, journal_id) as cursor:` where the copy ends; for the holder of the log's lock."""

    def __init__(self, root: int, journal_id: str) -> None:
        self._descriptor = os.open(_file(journal_id), _WRITE, 0o600, dir_fd=root)
        self._state = _restored(_read(self._descriptor))
        self.at = Position(**self._state["at"])
        self.behind: dict[str, str | None] = self._state["behind"]
        """Jobs whose directory refused lines, and from where on they may lack some; the others go on meanwhile."""

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._descriptor)

    @property
    def reads_again(self) -> bool:
        """Whether lines from here on may be in the log already, in any order."""
        return bool(self._state["again"])

    @property
    def journal_was_replaced(self) -> bool:
        """Whether the log holds lines and a status of acts that the journal no longer knows."""
        return bool(self._state["replaced"])

    def begin_anew(self) -> None:
        """The journal is not the one that was copied: nothing that was known about places in it holds."""
        self.behind.clear()
        self._state = {**_begun(BEGINNING, self.behind), "replaced": True}
        self.at = BEGINNING

    def save(self, at: Position, *, caught_up: bool) -> None:
        """In one write over the old text: a killed writer leaves the old place or the new one."""
        now = time.monotonic()
        if at != self.at and now - self._state["marked_at"] >= SETTLED_SECONDS:
            self._state.update(settled=self._state["marked"], marked=self._state["at"], marked_at=now)
        if caught_up:
            self._state.update(again=False, replaced=False)
        self._state["at"], self.at = at.as_dict(), at
        text = to_bytes(self._state)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        # The rest of a longer old text stays behind the newline, where nobody reads.
        write_all(self._descriptor, b"%08x %s\n" % (crc32(text), text))


class Glimpse:
    """What the cursor said a moment ago, for those who read the journal before they take the lock."""

    def __init__(self, logs_dir: str, journal_id: str) -> None:
        saved = _glimpsed(os.path.join(logs_dir, _file(journal_id)))
        state = _restored(saved)
        self.at = Position(**state["at"])
        self.behind: dict[str, str | None] = state["behind"]
        self.before_restart = Position(**saved["at"]) if saved is not None and saved["boot"] != boot_id() else None
        """Where the copy stood when the machine went down, if nobody has copied since."""


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
    saved = parse_line(text) if checksum == b"%08x" % crc32(text) else None
    return saved if saved is not None and saved.get("format") == FORMAT else None


def _restored(saved: dict[str, Any] | None) -> dict[str, Any]:
    """What was saved; from the beginning, where nothing can be missed, if there is nothing whole."""
    if saved is None:
        return _begun(BEGINNING, {})
    if saved["boot"] != boot_id():
        return {**_begun(Position(**saved["settled"]), saved["behind"]), "replaced": saved["replaced"]}
    return saved


def _begun(at: Position, behind: dict[str, str | None]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "at": at.as_dict(),
        "again": True,
        "replaced": False,
        "boot": boot_id(),
        "settled": at.as_dict(),
        "marked": at.as_dict(),
        "marked_at": time.monotonic(),
        "behind": behind,
    }
