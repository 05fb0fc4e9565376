"""Make foreign text safe to show: no control characters and no invisible characters."""

from __future__ import annotations

import re

UNSAFE = (
    r"\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: escape sequences
    r"\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff"  # invisible, or reversing the text
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2060-\u2065\u3164\uffa0\ufff9-\ufffb"  # also invisible
    r"\U000e0000-\U000e0fff"  # tags, which can hide a whole text
    r"\ud800-\udfff"  # surrogates, which no encoding accepts
)
_BLANK = r"[\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\U000e0100-\U000e01ef]"
"""Those that Python takes for printable."""
_NAMES = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}


def one_line(text: str) -> str:
    """The text on one line, with unsafe characters as visible escapes."""
    if text.isprintable() and (text.isascii() or not re.search(_BLANK, text)):
        return text
    return re.sub(f"[{UNSAFE}]", _visible, text)


def many_lines(text: str) -> str:
    """The same, but lines and tabs stay."""
    return "\n".join("\t".join(map(one_line, line.split("\t"))) for line in text.split("\n"))


def first_line(text: str) -> str:
    """The first line that is not empty."""
    return one_line(text.strip().partition("\n")[0].rstrip())


def _visible(found: re.Match[str]) -> str:
    character = found[0]
    return _NAMES.get(character) or ascii(character)[1:-1]
