"""Whoever encodes a change, the same JSON comes of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.jobs.status import Status
from mam.stores.sql.encoding import quick_text
from mam.writing import as_text

PLAIN = st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(Status)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(VALUES)
def test_it_is_the_same_text(value: object) -> None:
    assert quick_text(value) == as_text(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_comes_back_as_it_was(value: float) -> None:
    assert json.loads(quick_text(value)) == value


@pytest.mark.parametrize(
    "value", [1 << 64, -(1 << 80), "\ud800", {1: "a number for a name"}, json.loads("[" * 300 + "]" * 300)], ids=ascii
)
def test_what_the_quick_way_does_not_write_is_written_all_the_same(value: object) -> None:
    assert quick_text([value]) == as_text([value])
