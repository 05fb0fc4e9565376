"""Keeps what mam creates out of the project's git history."""

from __future__ import annotations

import os


def ignore_in_git(directory: str, lines: str = "*\n") -> None:
    """Creates a `.gitignore`, by default one that excludes everything, unless one exists."""
    try:
        file = os.open(
            os.path.join(directory, ".gitignore"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
    except OSError:
        return
    with open(file, "w", encoding="utf-8", errors="surrogateescape") as opened:
        opened.write(lines)
