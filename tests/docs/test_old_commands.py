"""The table of the seeds' sentences: every row is complete and names a test that exists."""

from __future__ import annotations

import re

import pytest

from tests.docs.naming import ROOT, is_test

TEXT = (ROOT / "docs" / "old-commands.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([MHV])(\d+) \| (.+?) \| (yes|partly|no) \| (.*?) \| `([^`]+)` \|$", TEXT, re.MULTILINE)


def test_every_line_of_the_tables_is_a_whole_row() -> None:
    lines = re.findall(r"^\| [MHV]\d+ \|.*$", TEXT, re.MULTILINE)
    assert len(lines) == len(ROWS) >= 171


@pytest.mark.parametrize("seed", "MHV")
def test_the_rows_are_numbered_and_do_not_repeat(seed: str) -> None:
    rows = [row for row in ROWS if row[0] == seed]
    assert [int(number) for _seed, number, *_rest in rows] == list(range(1, len(rows) + 1))
    sentences = [sentence for _seed, _number, sentence, *_rest in rows]
    assert len(set(sentences)) == len(sentences)


def test_every_sentence_that_does_not_hold_has_a_reason() -> None:
    assert [seed + number for seed, number, _sentence, holds, why, _test in ROWS if holds != "yes" and not why] == []


def test_the_test_of_each_row_exists() -> None:
    assert [test for test in sorted({row[-1] for row in ROWS}) if not is_test(test)] == []
