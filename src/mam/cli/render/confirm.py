"""Ask the user before something is done."""

from __future__ import annotations

import sys

from mam.errors import BadInput


def is_confirmed(question: str) -> bool:
    """Whether the user answers yes; BadInput without a terminal, since no person can answer there."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(why="cannot ask for confirmation without a terminal; give --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
