"""Fixtures that several rooms of tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Mam
from tests.disks import small_disk
from tests.postgres.databases import database, server

__all__ = ["database", "mam", "server", "small_disk"]


@pytest.fixture
def mam(tmp_path: Path) -> Mam:
    """The command, in a project and a home of its own."""
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    return Mam(here, home)
