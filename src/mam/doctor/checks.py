"""Run all checks; an error in one does not stop the others."""

from __future__ import annotations

from importlib import import_module

from mam.doctor.finding import FINE, MENDED, WRONG, Finding, wrong
from mam.errors import MamError
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context

CHECKS = {
    "settings": "mam.doctor.settings",
    "locks": "mam.doctor.locks",
    "leftovers": "mam.doctor.leftovers",
    "modes": "mam.doctor.modes",
    "store": "mam.doctor.store",
    "server": "mam.doctor.server",
    "records": "mam.doctor.records",
    "versions": "mam.doctor.versions",
    "agents": "mam.doctor.agents",
    "plugin": "mam.doctor.plugin",
    "disk": "mam.doctor.disk",
    "clock": "mam.doctor.clock",
    "aside": "mam.doctor.aside",
    "audit log": "mam.doctor.audit_log",
    "broker": "mam.doctor.broker",
    "consumers": "mam.doctor.consumers",
    "mirror": "mam.doctor.mirror",
    "git": "mam.doctor.git",
    "stores": "mam.doctor.stores",
}
"""In this order: first the checks that opening the store would block or falsify. A new check is a module with
`check(context)` and a line here."""


class Result(Frozen):
    check: str
    finding: Finding


def run_checks(context: Context, *, fix: bool) -> Iterator[Result]:
    for check in CHECKS:
        yield from _run_check(check, context, fix=fix)


def _run_check(check: str, context: Context, *, fix: bool) -> Iterator[Result]:
    mended: list[Finding] = []
    findings = _run(check, context)
    if fix and any(finding.fix is not None for finding in findings):
        for finding in findings:
            if finding.fix is not None:
                mended += _apply_fix(finding)
        reported = {finding.why for finding in mended}
        findings = [
            finding for finding in _run(check, context) if finding.state != FINE and finding.why not in reported
        ]
    for finding in (*mended, *findings):
        yield Result(check=check, finding=finding)


def _apply_fix(finding: Finding) -> list[Finding]:
    """The finding after the repair; a repair that failed keeps it."""
    assert finding.fix is not None
    try:
        finding.fix()
    except (MamError, OSError) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return [finding.replace(state=WRONG, what=f"{finding.what}; the repair failed: {problem}", mend=None, fix=None)]
    return [finding.replace(state=MENDED, mend=None, fix=None)]


def _run(check: str, context: Context) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(import_module(CHECKS[check]).check(context))
    except MamError as error:
        found.append(wrong(str(error), "mam could not run this check"))
    except OSError as error:
        found.append(wrong(f"{error.filename or check}: {error.strerror or error}", "mam could not run this check"))
    except Exception as error:
        found.append(wrong(f"the check itself failed: {type(error).__name__}: {error}", "this is a bug in mam"))
    return found
