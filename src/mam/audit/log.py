"""The audit log on disk, one directory per job.

    <logs_dir>/<job_id>/meta.json        the record as it was registered; written once
    <logs_dir>/<job_id>/events.ndjson    what happened, one JSON object per line, in order
    <logs_dir>/<job_id>/status.json      the status it has now

Readers need no lock and no registry. Writers hold the log's lock (`mam.audit.lock`) and go through the functions of
`mam.audit.files`.
"""

from __future__ import annotations

import errno
import os

from mam.jobs.input_rules import check_job_id, is_job_id
from mam.util.notices import warn
from mam.util.strict_json import safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

META, EVENTS, STATUS = "meta.json", "events.ndjson", "status.json"

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_REGULAR, _KIND = 0o100000, 0o170000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


def job_dir(logs_dir: str, job_id: str) -> str:
    """Where a job's history is; BadInput for what is not a job id, so that no path leads out of the log."""
    return os.path.join(logs_dir, check_job_id(job_id))


def list_jobs(logs_dir: str) -> list[str]:
    """The ids of all jobs that have a history, in order."""
    try:
        with os.scandir(logs_dir) as found:
            return sorted(item.name for item in found if is_job_id(item.name) and item.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []


def read_meta(logs_dir: str, job_id: str) -> dict[str, Any] | None:
    """The record as it was registered, or None when there is none that can be read."""
    return _read_object(logs_dir, job_id, META)


def read_status(logs_dir: str, job_id: str) -> str | None:
    """The status that the log knows, or None when there is none that can be read."""
    found = _read_object(logs_dir, job_id, STATUS)
    status = None if found is None else found.get("status")
    return status if isinstance(status, str) else None


def iter_lines(logs_dir: str, job_id: str) -> Iterator[dict[str, Any]]:
    """A job's history, oldest first; nothing for a job without one.

    A damaged line is skipped with a warning. The unfinished line at the end is
    skipped silently: a writer may be at work.
    """
    try:
        descriptor = open_file(logs_dir, job_id, EVENTS)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as file:
        for number, line in enumerate(file, start=1):
            record = parse_line(line)
            if record is not None:
                yield record
            elif line.endswith(b"\n"):
                file_name = os.path.join(job_dir(logs_dir, job_id), EVENTS)
                warn("mam.audit", f"{file_name}: line {number} is not whole and was passed over")


def takes_lines(logs_dir: str, job_id: str) -> bool:
    """Whether a job's history can be opened, or made."""
    try:
        os.close(open_file(logs_dir, job_id, EVENTS))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def parse_line(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line, or None when it is not complete."""
    try:
        record = safe_json(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def check_regular(descriptor: int, name: str) -> int:
    """The size of an open file; OSError for a pipe, a device or a directory, which no log holds."""
    found = os.fstat(descriptor)
    if found.st_mode & _KIND != _REGULAR:
        raise OSError(errno.EINVAL, "is not a regular file", name)
    return found.st_size


def _read_object(logs_dir: str, job_id: str, name: str) -> dict[str, Any] | None:
    try:
        descriptor = open_file(logs_dir, job_id, name)
        with os.fdopen(descriptor, "rb") as file:
            return parse_line(file.read())
    except OSError:
        return None


def open_file(logs_dir: str, job_id: str, name: str) -> int:
    """Follows no link; OSError for what is not a regular file."""
    folder = os.open(job_dir(logs_dir, job_id), _FOLDER)
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        check_regular(descriptor, name)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
