"""The command `mam` for tests of the worker's verbs, in a world of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Mam


@pytest.fixture
def mam(tmp_path: Path) -> Mam:
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    return Mam(here, home)
