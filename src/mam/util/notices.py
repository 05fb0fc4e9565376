"""Warnings of library code, and text that every store can hold."""

from __future__ import annotations

import sys


def warn(logger_name: str, warning: str) -> None:
    """Logs a warning; without a handler for that logger, it is one line on stderr."""
    import logging  # imported only here, to keep the hot path short

    logger = logging.getLogger(logger_name)
    if logger.hasHandlers():
        logger.warning("%s", warning)
    elif logger.isEnabledFor(logging.WARNING) and sys.stderr is not None:
        sys.stderr.write(f"mam: {_one_line(warning)}\n")


def _one_line(text: str) -> str:
    """A path may contain control characters; escape them for the terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def storable_text(text: str) -> str:
    """Replaces what a store cannot hold: NUL and halves of surrogate pairs."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
