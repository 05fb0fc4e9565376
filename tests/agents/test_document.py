"""docs/agents.md lists every verb; the generated reference lists the errors."""

from __future__ import annotations

from pathlib import Path

from mam.cli.verbs.agents import SUBVERBS

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")


def test_every_verb_is_there() -> None:
    assert [verb for verb in SUBVERBS if f"| `mam agents {verb}` |" not in TEXT] == []
