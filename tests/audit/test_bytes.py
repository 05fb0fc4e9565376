"""What is written is JSON that can be read again, all of it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from mam.util.encoding import to_bytes, to_log_bytes, write_all

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, True], "정": "렬\n"}, {"half": "\ud800", "정": 1}, [], "x"])
def test_both_encodings_decode_to_the_value(value: object) -> None:
    assert json.loads(to_bytes(value)) == json.loads(to_log_bytes(value)) == value


def test_the_journal_is_compact_and_the_log_readable() -> None:
    assert to_bytes({"a": [1, "정"]}) == '{"a":[1,"정"]}'.encode()
    assert to_bytes({"a": [1, "\ud800"]}) == b'{"a":[1,"\\ud800"]}'
    assert to_log_bytes({"a": [1, "정"]}) == '{"a": [1, "정"]}'.encode()
    assert to_log_bytes({"a": [1, "\ud800"]}) == b'{"a": [1, "\\ud800"]}'


def test_nan_is_for_logs_only() -> None:
    assert to_log_bytes(float("nan")) == b"NaN"
    for value in (float("nan"), {"half": "\ud800", "x": float("inf")}):
        with pytest.raises(ValueError, match="not JSON compliant"):
            to_bytes(value)


def test_a_disk_that_takes_a_part_gets_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    with (tmp_path / "file").open("wb") as file:
        write_all(file.fileno(), b"0123456789")
        write_all(file.fileno(), b"")
    assert (tmp_path / "file").read_bytes() == b"0123456789"
