"""A record that is made from its last text is the one that would have been written anew."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mam.util.encoding import encode_by_line, fields_replaced, to_bytes

TEXT = st.text(st.characters(codec="utf-8"))
PLAIN = st.none() | st.booleans() | st.integers() | TEXT
VALUE = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
FIELDS = st.dictionaries(TEXT, VALUE, min_size=1, max_size=8)


@given(FIELDS, st.data())
def test_only_the_lines_of_what_changed_are_made_anew(before: dict[str, Any], data: st.DataObject) -> None:
    changed = data.draw(st.dictionaries(st.sampled_from(sorted(before)), VALUE, max_size=3))
    after = {**before, **changed}

    assert fields_replaced(encode_by_line(before, to_bytes), after, changed) == encode_by_line(after, to_bytes)


@given(FIELDS, st.dictionaries(TEXT, VALUE, max_size=3), st.data())
def test_fields_that_come_or_go_make_it_anew(before: dict[str, Any], more: dict[str, Any], data: st.DataObject) -> None:
    gone = data.draw(st.sets(st.sampled_from(sorted(before)), max_size=2))
    after = {name: value for name, value in {**before, **more}.items() if name not in gone}
    changed = [name for name, value in after.items() if name not in before or before[name] != value]
    text = fields_replaced(encode_by_line(before, to_bytes), after, changed)

    assert text is None or json.loads(text) == after
    assert (text is None) == (after.keys() != before.keys())


def test_half_a_character_is_written_as_an_escape() -> None:
    before, after = {"a": "x", "b": 1}, {"a": "\ud800", "b": 1}

    assert json.loads(fields_replaced(encode_by_line(before, to_bytes), after, ["a"]) or b"") == after
