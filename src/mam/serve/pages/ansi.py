"""Output of programs with its colours, as HTML. Pure.

Colours become classes of the stylesheet, so that they suit a light and a dark page. Every other escape sequence is
left out, as `mam.util.escapes` does for a terminal, and every text is escaped.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from mam.util.escapes import EscapeFilter
from mam.util.safe_text import one_line

TYPE_CHECKING = False

LINE_LIMIT = 2_000
"""Characters of one line that are shown."""
_COLOUR = re.compile(r"\x1b\[([0-9;:]*)m")
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_STYLES = {"1": "bold", "2": "faint", "3": "italic", "4": "underline"}
_CODES_LIMIT = 40


def to_html(output: bytes | str) -> Markup:
    """The lines of an output. A line that a program has overwritten shows its last state."""
    data = output if isinstance(output, bytes) else output.encode("utf-8", "replace")
    escapes = EscapeFilter()
    text = (escapes.filter(data) + escapes.filter(b"\x18")).decode("utf-8", "replace").rstrip("\ufffd")
    painter = _Painter()
    return Markup("\n").join(painter.paint(_last_state(line)) for line in text.split("\n"))


def _last_state(line: str) -> str:
    shown = line.rstrip("\r").rpartition("\r")[2].expandtabs(8)
    if len(shown) <= LINE_LIMIT:
        return shown
    return f"{shown[:LINE_LIMIT]} … {len(shown) - LINE_LIMIT:,} more characters"


class _Painter:
    """Keeps the style from line to line, as a terminal does."""

    def __init__(self) -> None:
        self._styles: frozenset[str] = frozenset()
        self._colour = ""

    def paint(self, line: str) -> Markup:
        parts, end = [], 0
        for found in _COLOUR.finditer(line):
            parts.append(self._styled(line[end : found.start()]))
            self._set(found[1])
            end = found.end()
        parts.append(self._styled(line[end:]))
        return Markup("").join(parts)

    def _styled(self, text: str) -> Markup:
        if not text:
            return Markup("")
        names = " ".join(sorted(f"t-{name}" for name in (*self._styles, self._colour) if name))
        shown = escape(one_line(text))
        return Markup('<span class="{}">{}</span>').format(names, shown) if names else shown

    def _set(self, codes: str) -> None:
        words = re.split("[;:]", codes)[:_CODES_LIMIT]
        at = 0
        while at < len(words):
            at += self._set_one(words, at)

    def _set_one(self, words: list[str], at: int) -> int:
        """Returns how many words the code takes: a colour of the large palette takes more, and is left out."""
        code = words[at]
        if code in ("", "0"):
            self._styles, self._colour = frozenset(), ""
        elif code in _STYLES:
            self._styles |= {_STYLES[code]}
        elif code in ("22", "23", "24"):
            self._styles -= {"22": {"bold", "faint"}, "23": {"italic"}, "24": {"underline"}}[code]
        elif code in ("38", "48"):
            return 3 if words[at + 1 : at + 2] == ["5"] else 5
        elif code == "39":
            self._colour = ""
        elif code.isascii() and code.isdigit() and len(code) == 2 and code[0] in "39" and code[1] in "01234567":
            self._colour = _NAMES[int(code[1])]
        return 1
