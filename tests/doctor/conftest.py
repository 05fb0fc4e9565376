from __future__ import annotations

from pathlib import Path

import pytest

from tests.bus.conftest import broker
from tests.doctor.ward import Ward

__all__ = ["broker"]


@pytest.fixture
def ward(tmp_path: Path) -> Ward:
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    return Ward(here, home)
