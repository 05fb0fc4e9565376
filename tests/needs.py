"""Tests that run a program which is not here are skipped, and named at the end of the run. With `CI` set they fail.

What starts the program calls `need`: a fixture, a helper or the test. tools/needs.py lists all programs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator

import pytest
from tools.needs import PACKAGES, found, to_type

_REASON = "needs "


def need(*programs: str) -> None:
    unlisted = [program for program in programs if program not in PACKAGES]
    assert not unlisted, f"tools/needs.py does not list {unlisted}"
    missing = [program for program in programs if found(program) is None]
    if not missing:
        return
    message = f"{_REASON}{', '.join(missing)}: {to_type(missing)}"
    if os.environ.get("CI"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def program(name: str) -> str:
    """The path of a program that the test needs."""
    need(name)
    path = found(name)
    assert path is not None
    return path


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    """Behind everything else: which tests were skipped for want of a program."""
    yield
    names: dict[str, Counter[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        _, _, reason = report.longrepr
        reason = reason.removeprefix("Skipped: ")
        if reason.startswith(_REASON):
            names.setdefault(reason, Counter())[report.nodeid.partition("[")[0]] += 1
    for reason, tests in sorted(names.items()):
        terminalreporter.section(f"{tests.total()} skipped: {reason}")
        for test, count in sorted(tests.items()):
            terminalreporter.write_line(test if count == 1 else f"{test} ({count})")
