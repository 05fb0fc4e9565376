"""The parser for JSON from outside: any bytes give a value or a ValueError."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mam
from mam.util.strict_json import DEPTH_LIMIT, DuplicateName, UnsafeJson, is_deeper, safe_json, strict_json

HOSTILE = {
    "brackets": b"[" * 100_000,
    "closed brackets": b"[" * 100_000 + b"]" * 100_000,
    "braces": b'{"a":' * 30_000,
    "one level too many": b"[" * (DEPTH_LIMIT + 1) + b"]" * (DEPTH_LIMIT + 1),
    "behind a string of brackets": rb'["\\", "]]]", ' + b"[" * DEPTH_LIMIT + b"]" * DEPTH_LIMIT + b"]",
    "behind an escaped quote": rb'["\"]]]\\", ' + b"[" * DEPTH_LIMIT + b"]" * DEPTH_LIMIT + b"]",
    "quotes": b'"' * 100_000,
    "backslashes": b'"' + b"\\" * 100_001,
    "NaN": b"[NaN]",
    "endless": b"[-1e999]",
    "a long number": b"9" * 5_000,
    "a number that no float holds": b"9" * 400,
    "NUL": b'"\0"',
    "not UTF-8": b'"\xff"',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a surrogate in UTF-8": b'"\xed\xa0\x80"',
    "empty": b"",
    "two": b"1 2",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_rejected_json_is_a_value_error_of_one_line(name: str) -> None:
    for read in (strict_json, safe_json):
        with pytest.raises(ValueError, match=r"\A[^\n]+\Z"):
            read(HOSTILE[name])


def test_the_deepest_that_is_taken() -> None:
    deepest = b"[" * DEPTH_LIMIT + b"]" * DEPTH_LIMIT
    assert not is_deeper(safe_json(deepest), DEPTH_LIMIT)
    assert is_deeper(strict_json(deepest), DEPTH_LIMIT - 1)
    assert safe_json(b"[" + b"[]," * 10_000 + b"[]]") == [[]] * 10_001
    assert safe_json(rb'["[[[\"{{{\\", ' + b"1]") == ['[[["{{{\\', 1]
    text = '{"a": "' + "[{" * 10_000 + '"}'
    assert safe_json(text) == {"a": "[{" * 10_000}


def test_a_duplicate_name_is_rejected_in_strict_json() -> None:
    twice = b'{"a": 1, "a": 2}'
    assert safe_json(twice) == {"a": 2}
    with pytest.raises(DuplicateName):
        strict_json(twice)
    assert issubclass(DuplicateName, UnsafeJson)


def test_there_is_no_other_reader_of_what_comes_from_outside() -> None:
    """Those that are left read what mam itself wrote, or wrote to itself, and TOML of the user."""
    own = {
        "agents/companion.py", "config/file.py", "events/event.py", "plugin/edits.py", "serve/api/description.py",
        "stats/tally.py", "work/process/channel.py",
    }  # fmt: skip
    top = Path(mam.__file__).parent
    found = {
        str(path.relative_to(top))
        for path in top.rglob("*.py")
        if re.search(r"\bjson\.loads?\(|tomllib\.load|yaml\.(load|compose|safe_load)", path.read_text("utf-8"))
    }
    assert {name for name in found if not name.startswith(("stores/", "testing/"))} == own
