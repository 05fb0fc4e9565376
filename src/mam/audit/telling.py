"""What the audit log has to say to the person in front of it, when something went wrong with it."""

from __future__ import annotations

import sys


def tell(warning: str) -> None:
    """To whoever listens to the logger `mam.audit`; when nobody does, one line on stderr that says who speaks."""
    import logging  # only when there is something to tell: the hot path has nothing

    logger = logging.getLogger("mam.audit")
    if logger.hasHandlers():
        logger.warning("%s", warning)
    elif logger.isEnabledFor(logging.WARNING) and sys.stderr is not None:
        sys.stderr.write(f"mam: {_one_line(warning)}\n")


def _one_line(text: str) -> str:
    """A path may hold anything, and nothing in it may steer a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
