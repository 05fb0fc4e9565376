"""Look whether all is well: the store, the settings, and the machine under them.

One line for each thing: what it is, why it matters, and the command that mends it. Exit 1 if something is wrong; what
is only worth knowing (a note) is not. The whole journal and every record are read: ten thousand jobs take two to three
seconds of a processor.

  mam doctor
  mam doctor --fix          # mend what says so: caches, modes, leftovers, lags; never a record or the journal

In a pipe: check, state, what, why and command, separated by tabs.
"""

from __future__ import annotations

import sys

from mam.cli.output import person_reads, put, put_json, say
from mam.doctor.examination import Result, examine
from mam.doctor.finding import FINE, WRONG
from mam.doctor.patient import Patient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from mam.cli.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--fix", action="store_true", help="mend what can be mended safely")


def run(options: Options) -> int:
    patient = Patient(options.store, options.registry_dir)
    try:
        results = examine(patient, fix=options.fix)
        found = list(results) if options.json else _told(results, _shower())
    finally:
        patient.close()
    broken = sum(result.finding.state == WRONG for result in found)
    if options.json:
        put_json({"sound": not broken, "findings": [_as_json(result) for result in found]})
    elif broken:
        mendable = any(result.finding.fix is not None for result in found)
        say(f"{broken} {'things are' if broken > 1 else 'thing is'} wrong{'; --fix mends some of it' * mendable}")
    return 1 if broken else 0


def _told(results: Iterable[Result], show: Callable[[Result], None]) -> list[Result]:
    """As they come: some checks take a while."""
    found = []
    for result in results:
        show(result)
        sys.stdout.flush()
        found.append(result)
    return found


def _shower() -> Callable[[Result], None]:
    if not person_reads():
        return _put_line
    from mam.cli.doctor_page import Page

    return Page().show


def _put_line(result: Result) -> None:
    finding = result.finding
    put(result.check, finding.state, finding.what, finding.why, finding.mend or "")


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
