"""Each promise names tests that exist, and the seeded faults still have their place in the source."""

from __future__ import annotations

import re

import pytest

from tests.docs.naming import ROOT, is_test
from tests.faults.counting import DOCUMENT, markers
from tests.faults.mutants import applied
from tests.faults.seeded_faults import MUTANTS

PROMISES = re.findall(r"^\| (P\d+) \| (.+?) \|.*\| (.+?) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_promise_is_there_once_and_in_order() -> None:
    assert [name for name, _sentence, _tests in PROMISES] == [f"P{number}" for number in range(1, len(PROMISES) + 1)]
    assert len(PROMISES) >= 15


@pytest.mark.parametrize("name", [promise[0] for promise in PROMISES])
def test_a_promise_names_tests_that_exist(name: str) -> None:
    (tests,) = [tests for promise, _sentence, tests in PROMISES if promise == name]
    named = re.findall(r"`([^`]+)`", tests)
    assert named, f"{name} names no test"
    assert [test for test in named if not is_test(test)] == []


def test_no_test_of_a_promise_is_repeated_when_it_fails() -> None:
    """`.ci/run` gives a second chance to tests with this marker."""
    named = {file for _name, _sentence, tests in PROMISES for file in re.findall(r"`(tests/[^`]+)`", tests)}
    assert named
    assert not [file for file in sorted(named) if "mark.external" in (ROOT / file).read_text(encoding="utf-8")]


@pytest.mark.parametrize("part", ["long run", "mutants"])
def test_there_is_a_place_for_what_a_run_counts(part: str) -> None:
    begin, end = markers(part)
    before, _, after = DOCUMENT.read_text(encoding="utf-8").partition(begin)
    assert before
    assert end in after


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_a_seeded_fault_has_its_place_and_its_test(file: str) -> None:
    source = (ROOT / file).read_text(encoding="utf-8")
    for mutant in MUTANTS:
        if mutant.file == file:
            assert applied(mutant, source) != source, mutant.name
            assert (ROOT / mutant.caught_by.partition("::")[0]).exists(), mutant.name


def test_there_are_enough_of_them_and_none_twice() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 20
