from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bus.mosquitto import Mosquitto, need_mosquitto
from tests.cli.command import Mam


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    need_mosquitto()
    started = Mosquitto(tmp_path / "broker")
    yield started
    started.stop()


@pytest.fixture
def mam(tmp_path: Path) -> Mam:
    """The command without a broker."""
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    mam = Mam(here, home)
    mam.env["XDG_STATE_HOME"] = str(home / "state")
    return mam


@pytest.fixture
def news(mam: Mam, broker: Mosquitto) -> Mam:
    """The same with one."""
    mam.env.update(broker.env)
    return mam
