"""Records as text: one field a line, and every text that JSON allows."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mam.util.encoding import encode_by_line, to_bytes

TEXT = st.text(st.characters(codec="utf-8"))
PLAIN = st.none() | st.booleans() | st.integers() | TEXT
VALUE = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)


@given(st.dictionaries(TEXT, VALUE, min_size=1, max_size=8))
def test_each_field_has_a_line_of_its_own(fields: dict[str, Any]) -> None:
    text = encode_by_line(fields, to_bytes)
    assert json.loads(text) == fields
    lines = text.decode().split("\n")
    assert (lines[0], lines[-2:]) == ("{", ["}", ""])
    assert [json.loads(f"{{{line.removesuffix(',')}}}") for line in lines[1:-2]] == [
        {name: value} for name, value in fields.items()
    ]


def test_half_a_character_is_written_as_an_escape() -> None:
    fields = {"a": "\ud800", "b": 1}
    assert json.loads(encode_by_line(fields, to_bytes)) == fields
