"""The position of the audit log in one journal: a small file beside the log, so that no act asks the store for it.

Neither the position nor the lines are synced: after a power cut the position may be ahead of the lines. The file
therefore keeps a second, older position, before which the kernel has written everything. After a restart of the machine
the copy continues from there. Lines that are in the log already are not written twice.
"""

from __future__ import annotations

import os
import time
from zlib import crc32

from mam.audit.log import parse_line
from mam.errors import MamError
from mam.jobs.input_rules import check_job_id
from mam.stores.consumer import Position
from mam.util.clock import boot_id
from mam.util.encoding import to_bytes, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SETTLED_SECONDS = 120.0
"""Linux writes changed pages back after about 35 seconds; older ones are on the disk."""

FORMAT, OLD_FORMAT = 3, 2
"""The format of the file. That of mam 0.1.0 is not read: the copy starts at the beginning of the journal."""

_READ_TRIES = 20
_SIZE_LIMIT = 64 * 1024
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_WRITE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Cursor:
    """`with Cursor(root, epoch) as cursor:` the position of the copy, under the log's lock."""

    def __init__(self, root: int, epoch: str) -> None:
        self._descriptor = os.open(_file(epoch), _WRITE, 0o600, dir_fd=root)
        self._epoch = epoch
        self._state = _restored(_read(self._descriptor), epoch)
        self.at = Position(**self._state["at"])
        self.behind: dict[str, int] = self._state["behind"]
        """Jobs whose directory refused lines, and the entry after which they may lack some."""

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
        """Whether the log has lines or a status of acts that the journal no longer has."""
        return bool(self._state["replaced"])

    def start_over(self) -> None:
        """Starts over: the journal is not the one that was copied."""
        self.at = Position(epoch=self._epoch)
        self.behind.clear()
        self._state = {**_begun(self.at, self.behind), "replaced": True}

    def save(self, at: Position, *, caught_up: bool) -> None:
        """In one write over the old text: a killed writer leaves the old position or the new one."""
        now = time.monotonic()
        if at != self.at and now - self._state["marked_at"] >= SETTLED_SECONDS:
            self._state.update(settled=self._state["marked"], marked=self._state["at"], marked_at=now)
        if caught_up:
            self._state.update(again=False, replaced=False)
        self._state["at"], self.at = at.as_dict(), at
        text = to_bytes(self._state)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        # The rest of a longer old text stays after the newline and is not read.
        write_all(self._descriptor, b"%08x %s\n" % (crc32(text), text))


class CursorRead:
    """The cursor read without the lock: the journal is read before the lock is taken."""

    def __init__(self, logs_dir: str, epoch: str) -> None:
        saved = _read_unlocked(os.path.join(logs_dir, _file(epoch)))
        state = _restored(saved, epoch)
        self.at = Position(**state["at"])
        self.behind: dict[str, int] = state["behind"]
        self.before_restart = saved["at"]["number"] if saved is not None and saved["boot"] != boot_id() else None
        """The position of the copy when the machine restarted, if nothing was copied since."""


def is_of_0_1_0(root: int, epoch: str) -> bool:
    """Whether mam 0.1.0 was the last to copy this journal."""
    try:
        descriptor = os.open(_file(check_job_id(epoch)), _READ, dir_fd=root)
    except (OSError, MamError):
        return False
    try:
        return _read(descriptor, OLD_FORMAT) is not None
    finally:
        os.close(descriptor)


def _file(epoch: str) -> str:
    return f".cursor-{epoch}"


def _read_unlocked(path: str) -> dict[str, Any] | None:
    """A reader without the lock may read a half-written file, and tries again."""
    try:
        descriptor = os.open(path, _READ)
    except FileNotFoundError:
        return None
    try:
        for _ in range(_READ_TRIES):
            saved = _read(descriptor)
            if saved is not None:
                return saved
    finally:
        os.close(descriptor)
    return None


def _read(descriptor: int, wanted: int = FORMAT) -> dict[str, Any] | None:
    line = os.pread(descriptor, _SIZE_LIMIT, 0).partition(b"\n")[0]
    checksum, _, text = line.partition(b" ")
    saved = parse_line(text) if checksum == b"%08x" % crc32(text) else None
    return saved if saved is not None and saved.get("format") == wanted else None


def _restored(saved: dict[str, Any] | None, epoch: str) -> dict[str, Any]:
    """The saved state; without one, or with a damaged one, the beginning of the journal."""
    if saved is None:
        return _begun(Position(epoch=epoch), {})
    if saved["boot"] != boot_id():
        return {**_begun(Position(**saved["settled"]), saved["behind"]), "replaced": saved["replaced"]}
    return saved


def _begun(at: Position, behind: dict[str, int]) -> dict[str, Any]:
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
