from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def with_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under `CI`, jobs may not ask unless they say so."""
    monkeypatch.delenv("CI", raising=False)
