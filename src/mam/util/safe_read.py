"""Reading a file whose name somebody else may have given something else to: once, and only if it is a file."""

from __future__ import annotations

import errno
import os
import stat


def read_regular(path: str, limit: int, flags: int = 0) -> tuple[os.stat_result, bytes]:
    """What it is, and at most `limit` bytes and one more of what it holds. A pipe is not waited for; it, a directory or
    a device is an OSError like any other."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        content = bytearray()
        while len(content) <= limit and (part := os.read(descriptor, limit + 1 - len(content))):
            content += part
        return about, bytes(content)
    finally:
        os.close(descriptor)
