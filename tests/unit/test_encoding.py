"""Whoever encodes what becomes of a job, the same JSON comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.jobs.status import Status
from mam.stores.sql.encoding import ended_bytes, quick_text
from mam.writing import as_text

T = TypeVar("T")

PLAIN = st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(Status)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


class Ending:
    """A row whose end writes just this."""

    def ended(self, value: Any, encode: Callable[[object], T]) -> tuple[T, T, T]:
        return encode(value), encode([value]), encode({"lines": value})


def quick_bytes(value: Any) -> str:
    end: Any = Ending()
    texts = [text.decode() for text in ended_bytes(end, value)]
    assert json.loads(texts[2]) == {"lines": json.loads(texts[0])}
    return texts[0]


@given(VALUES)
def test_it_is_the_same_text(value: object) -> None:
    assert quick_text(value) == quick_bytes(value) == as_text(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_comes_back_as_it_was(value: float) -> None:
    assert json.loads(quick_text(value)) == json.loads(quick_bytes(value)) == value


@pytest.mark.parametrize(
    "value", [1 << 64, -(1 << 80), {1: "a number for a name"}, json.loads("[" * 300 + "]" * 300)], ids=ascii
)
def test_what_the_quick_way_does_not_write_is_written_all_the_same(value: object) -> None:
    assert quick_text([value]) == quick_bytes([value]) == as_text([value])


def test_half_a_surrogate_pair_is_escaped() -> None:
    """It cannot be UTF-8, which is all that a database takes."""
    assert quick_bytes("\ud800") == r'"\ud800"'
