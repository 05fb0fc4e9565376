"""Tokens and passwords of jobs, in a file of their own (0600), since a record must not hold them.

Each line is a JSON object from job ids to secrets and adds to the lines before it, so a new secret costs one line. A
process reads only what was added since it last read.
"""

from __future__ import annotations

import os

from mam.stores.private_files import replace_bytes, sync_directory
from mam.util.encoding import to_bytes, write_all
from mam.util.strict_json import safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Read:
    """What this process has read of one file: its lines up to `offset`, at `modified_ns`."""

    def __init__(self, inode: int) -> None:
        self.inode = inode
        self.offset = 0
        self.modified_ns = 0
        self.known: dict[str, dict[str, Any]] = {}
        self.sound = True


_read: dict[str, _Read] = {}


class Secrets:
    """A writer holds the store's lock."""

    def __init__(self, path: str) -> None:
        self._path = path

    def keep(self, job_id: str, secrets: dict[str, Any]) -> None:
        """Durable before mam rewrites the record without them."""
        known, sound = self._all()
        if not sound:
            # Moves the damaged file aside and writes its readable lines to a new one.
            os.replace(self._path, f"{self._path}.damaged")
            replace_bytes(self._path, to_bytes(known) + b"\n")
        new = not os.path.lexists(self._path)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, 0o600)
        try:
            _append(descriptor, to_bytes({job_id: secrets}))
        finally:
            os.close(descriptor)
        if new:
            sync_directory(os.path.dirname(self._path))

    def of(self, job_id: str) -> dict[str, Any]:
        return dict(self._all()[0].get(job_id, {}))

    def _all(self) -> tuple[dict[str, dict[str, Any]], bool]:
        """All secrets that can be read, and whether every line could be read."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return {}, True
        try:
            return _up_to_date(self._path, descriptor)
        finally:
            os.close(descriptor)


def _append(descriptor: int, line: bytes) -> None:
    size = os.fstat(descriptor).st_size
    ended = size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
    try:
        write_all(descriptor, (b"" if ended else b"\n") + line + b"\n")
        os.fsync(descriptor)
    except BaseException:
        os.ftruncate(descriptor, size)  # a line that may not be durable must not stay
        raise


def _up_to_date(path: str, descriptor: int) -> tuple[dict[str, dict[str, Any]], bool]:
    about = os.fstat(descriptor)
    found = _read.get(path)
    same = found is not None and found.inode == about.st_ino and about.st_size >= found.offset
    if found is None or not same or (about.st_size == found.offset and about.st_mtime_ns != found.modified_ns):
        found = _read[path] = _Read(about.st_ino)
    text = os.pread(descriptor, about.st_size - found.offset, found.offset)
    whole, _, rest = text.rpartition(b"\n")
    for line in whole.split(b"\n") if whole else ():
        found.sound = _add(found.known, line) and found.sound
    found.offset += len(text) - len(rest)
    found.modified_ns = about.st_mtime_ns
    if not rest:
        return found.known, found.sound
    known = dict(found.known)  # a last line without newline: an older format, or a writer at work; read again next time
    return known, _add(known, rest) and found.sound


def _add(known: dict[str, dict[str, Any]], line: bytes) -> bool:
    try:
        added = safe_json(line)
        known.update({job_id: {**known.get(job_id, {}), **secrets} for job_id, secrets in added.items()})
    except (ValueError, AttributeError, TypeError):
        return False
    return True
