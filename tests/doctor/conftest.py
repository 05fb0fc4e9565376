from __future__ import annotations

from pathlib import Path

import pytest

from tests.bus.conftest import broker
from tests.doctor.doctor_command import Doctor

__all__ = ["broker"]


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    return Doctor(here, home)
