"""Whether a test that a document names exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def is_test(name: str) -> bool:
    """`name` is a test function, also of the conformance suite, or the path of a file of tests."""
    if "/" in name:
        return bool(
            re.search(r"^ *def test_|^Test\w+ = |^class Test", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        )
    return name in _functions()


@cache
def _functions() -> frozenset[str]:
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src/mam/testing").rglob("*.py")]
    return frozenset(
        name
        for file in files
        for name in re.findall(r"^ *def (test_\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE)
    )
