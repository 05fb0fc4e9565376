from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bus.mosquitto import Mosquitto
from tests.cli.command import Mam


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    started = Mosquitto(tmp_path / "broker")
    yield started
    started.stop()


class Tracked(Mam):
    """Nothing that it started outlives its test."""

    def __init__(self, here: Path, home: Path) -> None:
        super().__init__(here, home)
        self.env["XDG_STATE_HOME"] = str(home / "state")
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        process = super().start(*words)
        self.started.append(process)
        return process

    def end_all(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            process.wait()


@pytest.fixture
def mam(tmp_path: Path) -> Iterator[Mam]:
    """The command without a broker."""
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    tracked = Tracked(here, home)
    yield tracked
    tracked.end_all()


@pytest.fixture
def mam_mqtt(mam: Mam, broker: Mosquitto) -> Mam:
    """The command with a broker."""
    mam.env.update(broker.env)
    return mam
