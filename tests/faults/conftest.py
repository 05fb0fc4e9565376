"""Fixtures that the faults share with the stores' tests, and a place in memory for faults that end processes only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults.homes import quick_place
from tests.postgres.conftest import database, server

__all__ = ["database", "folder", "server"]


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="mam-faults-", dir=quick_place()) as folder:
        yield Path(folder)
