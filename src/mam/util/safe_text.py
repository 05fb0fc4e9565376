"""Make foreign text safe to show: no control characters and no invisible characters."""

from __future__ import annotations

import re

UNSAFE = (
    r"\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: escape sequences
    r"\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff"  # invisible, or reversing the text
    r"\ud800-\udfff"  # surrogates, which no encoding accepts
)
_NAMES = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}


def one_line(text: str) -> str:
    """The text on one line, with unsafe characters as visible escapes."""
    if text.isprintable():
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
    code = ord(character)
    return _NAMES.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
