"""What a part of mam has to say to the person in front of it, when something went wrong with what it keeps."""

from __future__ import annotations

import sys


def warn(logger_name: str, warning: str) -> None:
    """To whoever listens to the logger of that name; when nobody does, one line on stderr that says who speaks."""
    import logging  # only when there is something to tell: the hot path has nothing

    logger = logging.getLogger(logger_name)
    if logger.hasHandlers():
        logger.warning("%s", warning)
    elif logger.isEnabledFor(logging.WARNING) and sys.stderr is not None:
        sys.stderr.write(f"mam: {_one_line(warning)}\n")


def _one_line(text: str) -> str:
    """A path may hold anything, and nothing in it may steer a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def storable_text(text: str) -> str:
    """What every store can hold: no NUL, no half of a character."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
