"""In a wrong directory, only the verbs that create stores leave anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Mam


@pytest.fixture(params=["with a letter", "empty"])
def other(mam: Mam, request: pytest.FixtureRequest) -> Path:
    place = mam.here / "other"
    place.mkdir(mode=0o700)
    if request.param == "with a letter":
        (place / "letter.txt").write_text("dear reader")
        (place / "package.json").write_text('{"name": "not a job"}')
    return place


@pytest.mark.parametrize(
    "line",
    ["list", "get abc", "pick -s x", "status abc", "stats", "watch", "wait abc", "complete abc",
     "fail abc --reason x", "prune", "cancel abc", "retry abc", "explain abc", "pause --agent x",
     "worker -s x --drain"],
)  # fmt: skip
def test_it_is_left_alone(mam: Mam, other: Path, line: str) -> None:
    before = sorted(other.iterdir())
    mam(*line.split(), "--store", "other").failed(9, "No store at", f"`mam init --store {other}` makes one")
    assert sorted(other.iterdir()) == before


def test_a_verb_that_creates_a_store_reports_it(mam: Mam, other: Path) -> None:
    ran = mam("register", "x", "--agent", "shell", "--store", "other")
    assert ran.code == 0
    assert ran.stderr == f"mam: created a store at {other}\n"
    assert mam("list", "--store", "other").code == 0


def test_init_leaves_a_store_that_is_known_for_one(mam: Mam, other: Path) -> None:
    assert f"created a store at {other}" in mam("init", "--store", "other").stderr
    assert mam("list", "--store", "other").code == 0
    assert "the store exists already" in mam("init", "--store", "other").stderr
