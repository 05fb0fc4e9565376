"""A job's history in pages, so that a log of any length needs no more memory than one page."""

from __future__ import annotations

import os

from mam.audit.log import EVENTS, open_file, parse_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PAGE_BYTES = 1 << 20
LINE_LIMIT = 1 << 24


def read_log_page(logs_dir: str, job_id: str, offset: int) -> tuple[list[dict[str, Any]], int]:
    """The lines from an offset on, as many as a page holds, and the offset after them; at the end it is the same."""
    try:
        data = _read(logs_dir, job_id, offset)
    except OSError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    lines = [line for line in map(parse_line, whole.split(b"\n")) if line is not None]
    return lines, offset + len(whole)


def _read(logs_dir: str, job_id: str, offset: int) -> bytes:
    file = open_file(logs_dir, job_id, EVENTS)
    try:
        data = os.pread(file, PAGE_BYTES, offset)
        if b"\n" not in data:  # a line longer than a page, or one that is still being written
            data = os.pread(file, LINE_LIMIT, offset)
    finally:
        os.close(file)
    return data
