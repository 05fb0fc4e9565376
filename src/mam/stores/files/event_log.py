"""`<job_id>.events.log`: one line per event or marker of a job, in the order of their numbers."""

from __future__ import annotations

import errno
import json
import os
import stat

from mam.writing import to_bytes, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.change import Line
    from mam.stores.files.directory import Directory

_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_PROBLEMS = {errno.ELOOP: "is a link", errno.EISDIR: "is a directory", errno.ENXIO: "is not a regular file"}
_TAIL = 1 << 12


def append_events(directory: Directory, job_id: str, told: list[Line]) -> str | None:
    """Adds what the log lacks and makes it durable; safe to repeat after a crash. Says what is in the log's place."""
    try:
        with directory:
            descriptor = os.open(f"{job_id}.events.log", _APPEND, 0o600, dir_fd=directory.descriptor)
    except OSError as error:
        if error.errno not in _PROBLEMS:
            raise  # the disk or the system is at fault, not this file
        return f"{_PROBLEMS[error.errno]}; events of this job are in the journal only"
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return "is not a regular file; events of this job are in the journal only"
        _append(descriptor, told)
    finally:
        os.close(descriptor)
    return None


def _append(descriptor: int, told: list[Line]) -> None:
    last, whole = _last_seq(descriptor, int(told[0]["seq"]) - 1, _upto(told[-1]))
    missing = [event for event in told if int(event["seq"]) > last]
    if missing:
        write_all(descriptor, (b"" if whole else b"\n") + b"".join(to_bytes(event) + b"\n" for event in missing))
    os.fdatasync(descriptor)


def read_events(directory: int, job_id: str) -> list[Line]:
    try:
        descriptor = os.open(f"{job_id}.events.log", _READ, dir_fd=directory)
    except OSError:
        return []
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return []
        found = [event for event in map(parse_event, file) if event is not None]
    return sorted(found, key=lambda event: int(event["seq"]))


def _last_seq(descriptor: int, least: int, most: int) -> tuple[int, bool]:
    """The highest number that the end of the log carries, and whether the log ends with a whole line.

    Numbers above `most` have not been given out: whatever wrote them, they say nothing about what is missing. Looked
    for from the end, since `least` nearly always is in the last line, and every act of a job comes by here.
    """
    size = os.fstat(descriptor).st_size
    reach = _TAIL
    while True:
        tail = os.pread(descriptor, min(reach, size), max(0, size - reach))
        lines = tail.splitlines() if reach >= size else tail.splitlines()[1:]
        highest = _highest(reversed(lines), least, most)
        if highest or reach >= size:
            return highest, not tail or tail.endswith(b"\n")
        reach *= 8


def _highest(lines: Iterable[bytes], least: int, most: int) -> int:
    highest = 0
    for event in map(parse_event, lines):
        if event is not None and highest < _upto(event) <= most:
            highest = _upto(event)
            if highest >= least:
                break
    return highest


def _upto(event: Line) -> int:
    return int(event["upto"] if "upto" in event else event["seq"])


def parse_event(line: bytes) -> Line | None:
    """None for a line that is torn, or that another program wrote in a form of its own."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    return event if type(event.get("seq")) is int and type(event.get("upto", 1)) is int else None
