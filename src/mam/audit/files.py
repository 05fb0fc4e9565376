"""Writes the files of the audit log. The caller holds the log's lock.

Nothing is synced: the journal is the durable copy, and `mam.audit.cursor` knows where to continue after a power cut.
Paths come from checked job ids and open directories only, and links inside the log are not followed.
"""

from __future__ import annotations

import os

from mam.audit.log import EVENTS, META, STATUS, check_regular, parse_line
from mam.jobs.input_rules import check_job_id
from mam.jobs.record import split_secrets
from mam.util.encoding import encode_by_line, to_log_bytes, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Mirrored = tuple[int, int]
    """Of a line: its entry, and which line of it."""

_TAIL = 4096
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_EVENTS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

BEFORE_ALL = (0, 0)


class JobFolder:
    """`with JobFolder(root, job_id) as folder:` one job's directory, created if missing."""

    def __init__(self, root: int, job_id: str) -> None:
        name = check_job_id(job_id)
        try:
            self._directory = os.open(name, _FOLDER, dir_fd=root)
        except FileNotFoundError:
            os.mkdir(name, 0o700, dir_fd=root)
            self._directory = os.open(name, _FOLDER, dir_fd=root)
        self._events = -1

    def __enter__(self) -> JobFolder:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._events >= 0:
            os.close(self._events)
        os.close(self._directory)

    def append(self, line: dict[str, Any]) -> None:
        """One line, in one write; a torn line before it is closed first and kept."""
        if self._events < 0:
            self._open_events()
        write_all(self._events, to_log_bytes(line) + b"\n")

    def mirrored(self, journal_id: str) -> Mirrored:
        """The newest line here that came from this journal; BEFORE_ALL without one.

        Searches back from the end, since local lines and lines of other journals may follow it.
        """
        size = self._open_events()
        span = _TAIL
        while size:
            start = max(0, size - span)
            found = _last_of(journal_id, os.pread(self._events, size - start, start))
            if found != BEFORE_ALL or start == 0:
                return found
            span *= 8
        return BEFORE_ALL

    def fingerprints(self, journal_id: str) -> tuple[set[int], dict[str, list[int]]]:
        """The fingerprints of all lines of this journal; and, by journal, those of other journals without their entry
        names."""
        self._open_events()
        own: set[int] = set()
        others: dict[str, list[int]] = {}
        with open(os.dup(self._events), "rb") as file:
            file.seek(0)
            for raw in file:
                line = parse_line(raw)
                name = "" if line is None else str(line.get("entry", ""))
                if line is None or not name:
                    continue
                journal, _, _ = name.rpartition(":")
                if journal == journal_id:
                    own.add(fingerprint(line))
                else:
                    others.setdefault(journal, []).append(fingerprint({**line, "entry": ""}))
        return own, others

    def began_elsewhere(self, journal_id: str) -> bool:
        """Whether the first line of this history came from another journal."""
        if not self._open_events():
            return False
        with open(os.dup(self._events), "rb") as file:
            file.seek(0)
            first = parse_line(file.readline())
        return first is None or not str(first.get("entry", "")).startswith(f"{journal_id}:")

    def write_meta_once(self, record: dict[str, Any]) -> None:
        """Writes the record as it was registered, unless it is there; a power cut may have left an empty file."""
        try:
            if os.stat(META, dir_fd=self._directory, follow_symlinks=False).st_size:
                return
        except FileNotFoundError:
            pass
        # The store removes secrets too, but this file outlives the store.
        self._replace(META, encode_by_line(split_secrets(record)[0], to_log_bytes))

    def write_status(self, job_id: str, status: str, updated_at: str) -> None:
        status_record = {"job_id": job_id, "status": status, "updated_at": updated_at}
        self._replace(STATUS, to_log_bytes(status_record) + b"\n")

    def _open_events(self) -> int:
        """The size of the history, which ends with a newline from now on."""
        if self._events < 0:
            self._events = os.open(EVENTS, _EVENTS, 0o600, dir_fd=self._directory)
        size = check_regular(self._events, EVENTS)
        if size and os.pread(self._events, 1, size - 1) != b"\n":
            write_all(self._events, b"\n")
            size += 1
        return size

    def _replace(self, name: str, content: bytes) -> None:
        """Readers see the old file or the new one. The lock makes the temporary name ours alone."""
        temporary = f".{name}.tmp"
        descriptor = os.open(temporary, _FRESH, 0o600, dir_fd=self._directory)
        try:
            write_all(descriptor, content)
        finally:
            os.close(descriptor)
        os.rename(temporary, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)


def fingerprint(line: dict[str, Any]) -> int:
    """A hash of a line with its entry name; valid in this process only."""
    return hash(to_log_bytes(line))


def entry_name(journal_id: str, number: int, index: int) -> str:
    """The name of a copied line: the journal, the entry, and the index of the line if it is not the first."""
    return f"{journal_id}:{number}.{index}" if index else f"{journal_id}:{number}"


def _last_of(journal_id: str, tail: bytes) -> Mirrored:
    """The newest line of this journal in the tail of a history, whose first line may lack its beginning."""
    prefix = f"{journal_id}:"
    marker = f'"entry": "{prefix}'.encode()
    at = tail.rfind(marker)
    while at >= 0:
        begin = tail.rfind(b"\n", 0, at) + 1
        # Parsed and not only searched: an event's data may hold the same words further inside.
        line = parse_line(tail[begin : tail.find(b"\n", at)])
        name = str(line.get("entry", "")) if line is not None else ""
        found = _mirrored(name.removeprefix(prefix)) if name.startswith(prefix) else BEFORE_ALL
        if found != BEFORE_ALL:
            return found
        at = tail.rfind(marker, 0, begin)
    return BEFORE_ALL


def _mirrored(name: str) -> Mirrored:
    """Parses what `entry_name` wrote after the journal."""
    number, _, index = name.partition(".")
    is_one = number.isdecimal() and (not index or index.isdecimal())
    return (int(number), int(index or 0)) if is_one else BEFORE_ALL
