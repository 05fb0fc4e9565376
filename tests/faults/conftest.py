"""A directory in memory, for faults that only end processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults.store_kinds import quick_place


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="mam-faults-", dir=quick_place()) as folder:
        yield Path(folder)
