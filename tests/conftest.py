"""Fixtures that several rooms of tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.cli.command import Mam
from tests.disks import own_disk, small_disk
from tests.postgres.databases import database, server

__all__ = ["database", "mam", "own_disk", "server", "small_disk"]

# How long an example takes says how busy the machine is, and nothing about mam.
settings.register_profile("mam", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mam")


@pytest.fixture
def mam(tmp_path: Path) -> Mam:
    """The command, in a project and a home of its own."""
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    return Mam(here, home)


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Stores that tests open in this process are not remembered as the user's."""
    state = tmp_path_factory.mktemp("state", numbered=True)
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(state)
    yield state
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before
