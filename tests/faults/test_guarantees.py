"""docs/guarantees.md is complete: promises have sentences and tests, and seeded faults a test that caught them."""

from __future__ import annotations

import re

from tests.faults.counting import DOCUMENT, markers
from tests.faults.mutants import ROOT
from tests.faults.seeded_faults import MUTANTS
from tests.faults.units import PostgresHistories, units

PROMISES = [f"P{number}" for number in range(1, 20)]


def rows(part: str) -> list[list[str]]:
    found = [line.strip("|").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in found]


def between(name: str) -> str:
    begin, end = markers(name)
    return DOCUMENT.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]


def test_each_promise_is_one_sentence_with_tests_that_exist() -> None:
    found = [row for row in rows(DOCUMENT.read_text(encoding="utf-8")) if re.fullmatch(r"P\d+", row[0])]
    assert [row[0] for row in found] == PROMISES
    for name, promise, *_limits, tests in found:
        assert promise.endswith("."), name
        files = re.findall(r"`([^`]+)`", tests)
        assert files, name
        assert [file for file in files if not (ROOT / file).is_file()] == [], name


def test_each_seeded_fault_has_a_row_and_was_caught() -> None:
    told = {row[0]: row[1] for row in rows(between("mutants"))[1:]}
    assert told.keys() == {mutant.name for mutant in MUTANTS}
    assert all(re.fullmatch(r"`test_\w+\.py::[\w:]+`", caught) for caught in told.values())


def test_what_a_long_run_counts_is_what_there_is() -> None:
    """The next long run counts a new fault; a removed fault is no longer in the table."""
    told = {(row[0], row[1]) for row in rows(between("long run"))[1:]}
    assert told <= {(unit.name, unit.on) for unit in units(PostgresHistories())}
