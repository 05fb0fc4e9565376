"""Read a prompt or a result from a file or from stdin, up to the accepted size."""

from __future__ import annotations

import sys

from mam.cli.render.streams import say
from mam.errors import BadInput
from mam.jobs.input_rules import TEXT_LIMIT


def read_text(what: str, file: str) -> str:
    """The text in a file, or in stdin for `-`, byte for byte."""
    content = _stdin(what) if file == "-" else _file(what, file)
    if len(content) > TEXT_LIMIT:
        raise BadInput(
            why=f"the {what} in {_name(file)} has more than {TEXT_LIMIT:,} bytes, the largest size that mam accepts"
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BadInput(why=f"the {what} in {_name(file)} is not valid UTF-8 at byte {error.start}") from None


def _stdin(what: str) -> bytes:
    if sys.stdin is None:
        raise BadInput(why=f"cannot read the {what} from stdin, which is closed")
    if sys.stdin.isatty():
        say(f"type the {what}, then Ctrl-D on an empty line")
    return sys.stdin.buffer.read(TEXT_LIMIT + 1)


def _file(what: str, file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read(TEXT_LIMIT + 1)
    except OSError as error:
        raise BadInput(why=f"cannot read the {what} from {file[:200]}: {error.strerror}") from None
    except ValueError:
        raise BadInput(why=f"{file[:200]!r} is not a valid file name") from None


def _name(file: str) -> str:
    return "stdin" if file == "-" else file[:200]
