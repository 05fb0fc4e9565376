"""Writes the counts of a run between markers in docs/guarantees.md."""

from __future__ import annotations

from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "guarantees.md"


def markers(part: str) -> tuple[str, str]:
    return f"<!-- {part}: begin -->", f"<!-- {part}: end -->"


def write_between(part: str, text: str) -> None:
    begin, end = markers(part)
    before, found, rest = DOCUMENT.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    assert found, f"{DOCUMENT.name} has no place for {part}"
    assert closed, f"{DOCUMENT.name} has no end of {part}"
    DOCUMENT.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
