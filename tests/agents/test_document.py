"""docs/agents.md lists every verb; the generated reference lists the errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam.cli.verbs.agents import SUBVERBS

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", SUBVERBS)
def test_every_verb_is_there(verb: str) -> None:
    assert f"| `mam agents {verb}` |" in TEXT
