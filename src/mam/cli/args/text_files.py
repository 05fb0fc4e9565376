"""Long texts from files and pipes, read no further than they could be accepted."""

from __future__ import annotations

import sys

from mam.cli.render.streams import say
from mam.errors import BadInput
from mam.jobs.input_rules import TEXT_LIMIT


def read_text(what: str, file: str) -> str:
    """The text in a file, or in stdin for `-`, byte for byte."""
    content = _stdin(what) if file == "-" else _file(what, file)
    if len(content) > TEXT_LIMIT:
        raise BadInput(why=f"the {what} in {_name(file)} has more than the {TEXT_LIMIT:,} bytes that are taken")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BadInput(why=f"the {what} in {_name(file)} is not valid UTF-8 at byte {error.start}") from None


def _stdin(what: str) -> bytes:
    if sys.stdin is None:
        raise BadInput(why=f"the {what} was to come from stdin, which is closed")
    if sys.stdin.isatty():
        say(f"type the {what}; Ctrl-D on an empty line ends it")
    return sys.stdin.buffer.read(TEXT_LIMIT + 1)


def _file(what: str, file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read(TEXT_LIMIT + 1)
    except OSError as error:
        raise BadInput(why=f"the {what} cannot be read from {file[:200]}: {error.strerror}") from None
    except ValueError:
        raise BadInput(why=f"{file[:200]!r} is not the name of a file") from None


def _name(file: str) -> str:
    return "stdin" if file == "-" else file[:200]
