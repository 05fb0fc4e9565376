"""Counts failures of the audit log in a file beside the store, for `mam doctor`."""

from __future__ import annotations

import os

from mam.audit.log import parse_line
from mam.util.encoding import to_log_bytes, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "audit.failures"


def count_failure(home: str, problem: str, at: str) -> None:
    """Adds one. Two processes at once may count as one; the number is only shown."""
    path = os.path.join(home, FILE)
    temporary = f"{path}.{os.getpid()}.tmp"
    count = (read_failures(home) or {}).get("count", 0) + 1
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            write_all(descriptor, to_log_bytes({"count": count, "last": problem, "at": at}) + b"\n")
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)  # frees its space on a full disk
        raise


def read_failures(home: str) -> dict[str, Any] | None:
    """{count, last, at}, or None when nothing has failed yet."""
    try:
        with open(os.path.join(home, FILE), "rb") as file:
            found = parse_line(file.read())
    except OSError:
        return None
    return found if found is not None and isinstance(found.get("count"), int) else None
