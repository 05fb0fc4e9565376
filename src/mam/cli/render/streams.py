"""Print data to stdout and messages to stderr, without control characters that a terminal would obey."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.errors import MamError
    from mam.jobs.record import Job


def say(message: str) -> None:
    """Print a message for people, as one line on stderr."""
    if sys.stderr is not None:
        sys.stderr.write(f"mam: {_printable(message)}\n")


def say_error(error: MamError, *, as_json: bool) -> None:
    """Print an error on stderr: its message, or with --json an object that also holds its facts."""
    message = str(error)
    if not as_json:
        say(message)
        return
    # A worker's door passes on the name of the error that it met.
    facts = {name: fact for name, fact in error.facts.items() if fact not in (message, "")}
    kind = str(facts.pop("type", None) or type(error).__name__)
    say_error_object(kind, message, error.exit_code, facts)


def say_error_object(kind: str, message: str, exit_code: int, facts: dict[str, object] | None = None) -> None:
    """Print one JSON object as one line on stderr."""
    plain = {
        name: fact if isinstance(fact, list | int) or fact is None else str(fact)
        for name, fact in (facts or {}).items()
    }
    if sys.stderr is not None:
        fields = {"type": kind, "message": message, "exit_code": exit_code, **plain}
        sys.stderr.write(json_text({"error": fields}) + "\n")


def print_row(*columns: str) -> None:
    """Print one line of data. Tabs separate the columns; no column contains one."""
    sys.stdout.write("\t".join(map(_printable, columns)) + "\n")


def print_text(text: str) -> None:
    """Print a text: byte for byte in a pipe, with visible escapes on a terminal."""
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
    """Print an array of any length, one element at a time."""
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
    """Print a job after a write: the record with --json, otherwise `line`."""
    if as_json:
        print_json(job.to_json())
    else:
        print_row(line)


def stderr_is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def stdout_is_terminal() -> bool:
    """Whether to print tables and colours."""
    return sys.stdout is not None and sys.stdout.isatty()


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    from mam.cli.render.text import one_line  # imports re, which few lines need

    return one_line(text)
