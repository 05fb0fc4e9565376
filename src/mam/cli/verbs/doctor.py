"""Check the store, the settings and the machine.

Each finding has a state, a description, its importance and the command that repairs it. Exit code 1: something is
wrong. A note is not an error. The doctor reads the whole journal and every record: ten thousand jobs take two to three
seconds of CPU time.

  mam doctor
  mam doctor --fix    # repair caches, modes, leftover files and lags; never a record or the journal

In a pipe: check, state, what, why and command, separated by tabs.
"""

from __future__ import annotations

import sys
from time import monotonic

from mam.cli.render.streams import print_json, print_row, say, stdout_is_terminal
from mam.doctor.checks import Result, run_checks
from mam.doctor.context import Context
from mam.doctor.finding import FINE, WRONG, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from mam.cli.args.parser import Options, Parser

EACH, SHOWN_SECONDS = 100, 0.2


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--fix", action="store_true", help="repair what is safe to repair")


def run(options: Options) -> int:
    progress = ProgressLine()
    context = Context(options.store, options.registry_dir, progress.count_one)
    try:
        results = progress.clear_before_each(run_checks(context, fix=options.fix))
        found = list(results) if options.json else _print_results(results, _printer())
    finally:
        context.close()
    broken = sum(result.finding.state == WRONG for result in found)
    if options.json:
        print_json({"sound": not broken, "findings": [_as_json(result) for result in found]})
    elif broken:
        fixable = any(result.finding.fix is not None for result in found)
        say(f"{count(broken, 'problem')} found{'; --fix repairs some of them' * fixable}")
    return 1 if broken else 0


class ProgressLine:
    """A line on the terminal that counts the records read so far. It disappears before each finding."""

    def __init__(self) -> None:
        self._shows = sys.stderr is not None and sys.stderr.isatty()
        self._counts: dict[str, int] = {}
        self._shown_at = monotonic()
        self._is_shown = False

    def count_one(self, what: str) -> None:
        number = self._counts[what] = self._counts.get(what, 0) + 1
        if self._shows and number % EACH == 0 and monotonic() - self._shown_at >= SHOWN_SECONDS:
            self._shown_at, self._is_shown = monotonic(), True
            sys.stderr.write(f"\r\x1b[K{number:,} {what} checked …")
            sys.stderr.flush()

    def clear_before_each(self, results: Iterable[Result]) -> Iterator[Result]:
        for result in results:
            self._counts.clear()
            if self._is_shown:
                self._is_shown = False
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            yield result


def _print_results(results: Iterable[Result], show: Callable[[Result], None]) -> list[Result]:
    """Print each result at once, because some checks take long."""
    found = []
    for result in results:
        show(result)
        sys.stdout.flush()
        found.append(result)
    return found


def _printer() -> Callable[[Result], None]:
    if not stdout_is_terminal():
        return _put_line
    from mam.cli.render.doctor import Page

    return Page().show


def _put_line(result: Result) -> None:
    finding = result.finding
    print_row(result.check, finding.state, finding.what, finding.why, finding.mend or "")


def _as_json(result: Result) -> dict[str, Any]:
    finding = result.finding
    return {
        "check": result.check,
        "state": finding.state,
        "what": finding.what,
        "why": finding.why or None,
        "mend": finding.mend,
        "fixable": finding.fix is not None and finding.state != FINE,
    }
