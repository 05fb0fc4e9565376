"""The directory on files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from mam.agents.directory import FilesDirectory
from mam.testing.clock import FakeClock
from tests.agents.races import race
from tests.agents.suite import DirectorySuite, Plant


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


class TestFiles(DirectorySuite):
    @pytest.fixture
    def directory(self, tmp_path: Path, clock: FakeClock) -> FilesDirectory:
        return FilesDirectory(str(tmp_path / "agents"), clock)

    @pytest.fixture
    def plant(self, tmp_path: Path) -> Plant:
        def plant(agent_id: str, content: bytes) -> None:
            entry = tmp_path / "agents" / "live_agents" / agent_id
            entry.mkdir(parents=True, exist_ok=True, mode=0o700)
            for level in (tmp_path / "agents", tmp_path / "agents" / "live_agents", entry):
                level.chmod(0o700)
            (entry / "record.json").write_bytes(content)
            (entry / "record.json").chmod(0o600)

        return plant


def test_of_twelve_generations_one_wins_a_thousand_times(tmp_path: Path) -> None:
    race(partial(FilesDirectory, str(tmp_path / "agents")), rounds=1000)
