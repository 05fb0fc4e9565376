"""Fixtures of the inbox."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.inbox.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """In memory if the system supports that: a kill leaves the same state, and hundreds of kills are faster."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="mam-", dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()
