"""Help texts, wrapped to the width of the terminal. A verb's help is the docstring of its module."""

from __future__ import annotations

import re
import shutil
import textwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

DEFAULT_WIDTH, MAX_WIDTH = 80, 120
VERB_COLUMN = 14
_TOP = """\
mam hands work to coding agents and records the outcome.

usage: mam VERB [options]
       mam VERB --help
start: mam run -- echo hi
"""
_BOTTOM = """\
A unique prefix of a job's id is sufficient. Every verb accepts --json for programs and --store ADDRESS (or MAM_STORE)
to select the store. The default is the nearest .mam/jobs upward from the working directory; `mam where` prints it.
"""
_TWO_COLUMNS = re.compile(r"(\s+\S.*?\s{2,})(?=\S)")


def page_width() -> int:
    """COLUMNS, else the width of the terminal, else 80."""
    return min(shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns, MAX_WIDTH)


def overview(documents: Mapping[str, str], first: Sequence[str]) -> str:
    """`mam --help`: the verbs of `first`, then the others."""
    width = page_width()
    more = [verb for verb in documents if verb not in first]
    parts = (_TOP, _verbs(documents, first, width), "more:\n" + _verbs(documents, more, width), wrap(_BOTTOM, width))
    return "\n".join(parts)


def wrap(document: str, width: int) -> str:
    """Paragraphs are filled. An indented line stays as it is, or keeps its text in the second column."""
    lines: list[str] = []
    for block in _blocks(document.splitlines()):
        if not block[0].strip():
            lines.append("")
        elif block[0].startswith(" "):
            lines += _wrap_columns(block[0], width)
        else:
            lines += textwrap.wrap(" ".join(block), width, break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines) + "\n"


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Each empty or indented line alone; the lines of a paragraph together."""
    paragraph: list[str] = []
    for line in lines:
        if line.strip() and not line.startswith(" "):
            paragraph.append(line)
            continue
        if paragraph:
            yield paragraph
            paragraph = []
        yield [line]
    if paragraph:
        yield paragraph


def _wrap_columns(line: str, width: int) -> list[str]:
    columns = _TWO_COLUMNS.match(line)
    if len(line) <= width or columns is None:
        return [line]
    indent = " " * len(columns[1])
    return textwrap.wrap(
        line[columns.end() :], width, initial_indent=columns[1], subsequent_indent=indent, break_on_hyphens=False
    )


def _verbs(documents: Mapping[str, str], verbs: Sequence[str], width: int) -> str:
    """A line for each verb; the longest name leaves two spaces before the second column."""
    lines = (f"  {verb:<{VERB_COLUMN - 2}}{_summary(documents[verb])}" for verb in verbs)
    return "".join(f"{part}\n" for line in lines for part in _wrap_columns(line, width))


def _summary(document: str) -> str:
    line = document.partition("\n")[0].rstrip(".")
    return line[:1].lower() + line[1:]
