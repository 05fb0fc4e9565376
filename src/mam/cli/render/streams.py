"""Data goes to stdout, talk goes to stderr, and both are safe to look at."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.jobs.record import Job


def say(message: str) -> None:
    """One line of talk."""
    if sys.stderr is not None:
        sys.stderr.write(f"mam: {_printable(message)}\n")


def print_row(*columns: str) -> None:
    """One line of data; columns are separated by tabs, which no column contains."""
    sys.stdout.write("\t".join(map(_printable, columns)) + "\n")


def print_text(text: str) -> None:
    """Byte for byte in a pipe; a person's terminal is kept safe from what the text may hold."""
    if stdout_is_terminal():
        from mam.cli.render.text import many_lines

        sys.stdout.write(many_lines(text).rstrip("\n") + "\n")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode(errors="surrogatepass"))


def print_json(value: Any) -> None:
    sys.stdout.write(json_text(value, indent=2) + "\n")


def print_json_line(value: Any) -> None:
    sys.stdout.write(json_text(value) + "\n")


def print_json_array(values: Iterable[Any]) -> None:
    """An array of any length, written as it comes."""
    opening = "[\n"
    for value in values:
        sys.stdout.write(opening + json_text(value, indent=2))
        opening = ",\n"
    sys.stdout.write("[]\n" if opening == "[\n" else "\n]\n")


def json_text(value: Any, indent: int | None = None) -> str:
    import json

    from mam.cli.render.text import json_safe

    return json_safe(json.dumps(value, ensure_ascii=False, indent=indent))


def print_job(job: Job, *, as_json: bool, line: str) -> None:
    """A job after a write: the whole record for a program that asked, else the one word a script needs."""
    if as_json:
        print_json(job.to_json())
    else:
        print_row(line)


def stdout_is_terminal() -> bool:
    """Whether stdout is a terminal, so that tables and colours help."""
    return sys.stdout is not None and sys.stdout.isatty()


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    from mam.cli.render.text import (
        one_line,  # what it needs costs half of an interpreter's start, and few lines need it
    )

    return one_line(text)
