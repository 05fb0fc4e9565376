"""`<job_id>.events.log`: one line per event or marker of a job, in the order of their numbers."""

from __future__ import annotations

import json
import os

from mam.stores.files.frames import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.change import Line
    from mam.stores.files.directory import Directory

_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_TAIL = 1 << 16


def append_events(directory: Directory, job_id: str, told: list[Line]) -> None:
    """Adds what the log lacks and makes it durable; safe to repeat after a crash."""
    with directory:
        descriptor = os.open(f"{job_id}.events.log", _APPEND, 0o600, dir_fd=directory.descriptor)
    try:
        last, whole = _last_seq(descriptor)
        missing = [event for event in told if int(event["seq"]) > last]
        if missing:
            data = (b"" if whole else b"\n") + b"".join(to_bytes(event) + b"\n" for event in missing)
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def read_events(directory: int, job_id: str) -> list[Line]:
    try:
        descriptor = os.open(f"{job_id}.events.log", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
    except OSError:
        return []
    with open(descriptor, "rb") as file:
        found = [event for event in map(_parse, file) if event is not None]
    return sorted(found, key=lambda event: int(event["seq"]))


def _last_seq(descriptor: int) -> tuple[int, bool]:
    """The highest number in the log's last lines, and whether the log ends with a whole line."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return 0, True
    tail = os.pread(descriptor, _TAIL, max(0, size - _TAIL))
    events = [event for event in map(_parse, tail.splitlines()) if event is not None]
    return max((int(event["upto"] if "upto" in event else event["seq"]) for event in events), default=0), tail.endswith(
        b"\n"
    )


def _parse(line: bytes) -> Line | None:
    """None for a line that is torn, or that another program wrote in a form of its own."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("seq"), int) else None
