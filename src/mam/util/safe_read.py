"""Reads a file safely when others can replace it: opened once, and only a regular file."""

from __future__ import annotations

import errno
import os
import stat


def read_regular(path: str, limit: int, flags: int = 0) -> tuple[os.stat_result, bytes]:
    """Its stat result, and at most `limit` + 1 bytes of its content. OSError, without waiting, for a pipe, a directory
    or a device."""
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
