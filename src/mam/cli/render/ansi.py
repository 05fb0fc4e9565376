"""Write styled lines to a terminal. NO_COLOR and a dumb terminal leave the text without styles."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.render.prose import StyledLine

STYLES = {
    "bold": "1", "dim": "2", "italic": "3",
    "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36",
}  # fmt: skip
"""The terminal's own colours, which the user chose for a light or a dark background."""


def has_colours() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def to_ansi(line: StyledLine, colours: bool) -> str:
    if not colours:
        return "".join(text for text, _ in line).rstrip()
    return "".join(_styled(text, style) for text, style in line)


def _styled(text: str, style: str) -> str:
    if not style or not text:
        return text
    codes = ";".join(STYLES[word] for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m"
