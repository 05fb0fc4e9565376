"""docs/agents.md has every verb and every refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam.agents import errors
from mam.cli.agents import SUBVERBS
from mam.errors import MamError

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MamError)]


@pytest.mark.parametrize("verb", SUBVERBS)
def test_every_verb_is_there(verb: str) -> None:
    assert f"| `mam agents {verb}` |" in TEXT


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not MamError])
def test_every_refusal_is_there(kind: type[MamError]) -> None:
    assert f"| {kind.exit_code} | `{kind.__name__}` | {' '.join((kind.__doc__ or '').split())} |" in TEXT
