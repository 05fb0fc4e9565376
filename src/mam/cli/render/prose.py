"""Wrap and style an agent's text for a terminal: paragraphs, lists, headings and code of Markdown. Pure.

A line is a list of styled parts. Every text is escaped first, so that nothing in it can move the cursor or hide.
"""

from __future__ import annotations

import re

from mam.cli.render.text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Part = tuple[str, str]
    """A text and its style: words of `STYLES`."""
    StyledLine = list[Part]

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*")
_MARKER = re.compile(r"(\s*)([-*+]|\d{1,3}[.)])\s+")
_FENCE = re.compile(r"\s*(```|~~~)")
_WORD = re.compile(r"\s*\S+|\s+")


def cell_length(text: str) -> int:
    """The columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def safe(text: str) -> str:
    """One line without control characters; colours of programs are removed."""
    return one_line(_COLOUR.sub("", text).expandtabs(4) if "\x1b" in text or "\t" in text else text)


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns, with an ellipsis if it is longer."""
    if len(text) <= width and cell_length(text) <= width:
        return text
    text = text[: max(0, width - 1)]
    while text and cell_length(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…" if width > 0 else ""


def fit(line: StyledLine, width: int) -> StyledLine:
    """The line, if it is not too wide; otherwise its beginning."""
    taken = 0
    for at, (text, style) in enumerate(line):
        length = cell_length(text)
        if taken + length > width:
            return [*line[:at], (cut(text, width - taken), style)]
        taken += length
    return line


def prose(text: str, width: int, style: str = "") -> list[StyledLine]:
    """Markdown as lines of at most `width` columns."""
    lines: list[StyledLine] = []
    in_code = False
    for raw in text.strip("\n").split("\n"):
        line = safe(raw.rstrip())
        if _FENCE.match(line):
            in_code = not in_code
        elif in_code:
            lines += [[("│ ", "dim"), (part, "cyan")] for part in fold(line, width - 2)] or [[("│ ", "dim")]]
        elif line.startswith("#"):
            lines += wrap([(line.lstrip("#").strip(), "bold")], width)
        else:
            lines += _paragraph(line, width, style)
    return lines


def _paragraph(line: str, width: int, style: str) -> list[StyledLine]:
    marker = _MARKER.match(line)
    if marker is None:
        indent = line[: len(line) - len(line.lstrip())][: width // 2]
        return wrap(inline(line.lstrip(), style), width, indent, indent)
    bullet = "•" if marker[2] in "-*+" else marker[2]
    first = f"{marker[1][: width // 2]}{bullet} "
    return wrap(inline(line[marker.end() :], style), width, first, " " * len(first))


def inline(text: str, style: str = "") -> StyledLine:
    """`code` and **strong** of one line."""
    parts, end = [], 0
    for found in _INLINE.finditer(text):
        parts.append((text[end : found.start()], style))
        parts.append((found[1], "cyan") if found[1] is not None else (found[2], "bold"))
        end = found.end()
    parts.append((text[end:], style))
    return [part for part in parts if part[0]]


def wrap(parts: StyledLine, width: int, first: str = "", rest: str = "") -> list[StyledLine]:
    """Breaks at spaces; a longer word is split."""
    width = max(width, len(first) + 8)
    lines: list[StyledLine] = [[(first, "")] if first else []]
    used = len(first)
    for word, style in _words(parts, width - len(rest)):
        length = cell_length(word)
        if used + length > width and used > len(rest):
            lines.append([(rest, "")] if rest else [])
            word = word.lstrip()
            used, length = len(rest), cell_length(word)
        lines[-1].append((word, style))
        used += length
    return lines


def _words(parts: StyledLine, width: int) -> Iterator[Part]:
    for text, style in parts:
        for word in _WORD.findall(text):
            if len(word) <= width and cell_length(word) <= width:
                yield word, style
            else:
                yield from ((piece, style) for piece in fold(word, width))


def fold(text: str, width: int) -> list[str]:
    """Pieces of at most `width` columns."""
    width = max(width, 2)
    if text.isascii():
        return [text[at : at + width] for at in range(0, len(text), width)]
    pieces, used = [""], 0
    for letter in text:
        length = cell_length(letter)
        if used + length > width:
            pieces.append("")
            used = 0
        pieces[-1] += letter
        used += length
    return pieces
