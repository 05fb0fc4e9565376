"""The session directory on files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mam.agents.acts import publish, refresh
from mam.agents.cleanup import clean_up
from mam.agents.errors import GenerationConflict
from mam.agents.files_directory import FilesDirectory
from mam.agents.files_tree import RECORD
from mam.agents.lookup import EXPIRED, FOUND, LIVE, by_name
from mam.testing.clock import FakeClock
from mam.testing.races import RacePool
from tests.agents.races import race
from tests.agents.records import a_record
from tests.agents.suite import GPU, DirectorySuite, Plant


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


@pytest.mark.timeout(1200)
def test_one_of_twelve_generations_wins_a_thousand_times(tmp_path: Path) -> None:
    race(partial(FilesDirectory, str(tmp_path / "agents")), rounds=1000)


def test_a_record_that_is_replaced_while_it_is_read_is_the_new_one(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session refreshes its record between open() and fstat() of a reader."""
    directory = FilesDirectory(str(tmp_path / "agents"), clock)
    directory.change(GPU, publish(a_record(), 60))
    open_dir = os.open

    def replaced_meanwhile(path: str, *arguments: int, dir_fd: int | None = None) -> int:
        descriptor = open_dir(path, *arguments, dir_fd=dir_fd)
        if path == RECORD:
            monkeypatch.undo()
            directory.change(GPU, publish(a_record(), 120))
        return descriptor

    monkeypatch.setattr(os, "open", replaced_meanwhile)
    lookup = directory.read(GPU)

    assert lookup.kind == FOUND, lookup.reason
    assert lookup.record == directory.read(GPU).record


# -- the clock -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [-400 * 86_400, -3600, 3600, 400 * 86_400])
def test_a_jump_of_the_wall_clock_decides_nothing(tmp_path: Path, clock: FakeClock, jump: float) -> None:
    directory = FilesDirectory(str(tmp_path / "agents"), clock)
    directory.change(GPU, publish(a_record(), 60))
    clock.set_wall(jump)

    assert by_name(directory, "gpu").kind == LIVE
    with pytest.raises(GenerationConflict):
        directory.change(GPU, publish(a_record(generation="generation-2"), 60))
    assert clean_up(directory, dry_run=False).applied == ()
    clock.advance(61)
    assert by_name(directory, "gpu").kind == EXPIRED
    directory.change(GPU, refresh("generation-1"))
    assert by_name(directory, "gpu").kind == LIVE


def test_after_a_restart_the_wall_clock_decides(tmp_path: Path, clock: FakeClock) -> None:
    directory = FilesDirectory(str(tmp_path / "agents"), clock)
    directory.change(GPU, publish(a_record(), 60))
    clock.restart(30)
    assert by_name(directory, "gpu").kind == LIVE
    clock.advance(31)
    assert by_name(directory, "gpu").kind == EXPIRED


def test_a_lease_that_was_edited_by_hand_is_valid(tmp_path: Path, clock: FakeClock) -> None:
    directory = FilesDirectory(str(tmp_path / "agents"), clock)
    directory.change(GPU, publish(a_record(), 60))
    file = tmp_path / "agents" / "live_agents" / GPU / "record.json"
    record = json.loads(file.read_bytes())
    record["liveness"].update(published_at="2025-01-01T00:00:00Z", lease_expires_at="2025-01-02T00:00:00Z")
    file.write_text(json.dumps(record), encoding="utf-8")
    assert by_name(directory, "gpu").kind == EXPIRED


# -- killed in the middle --------------------------------------------------------------------------------------------


def test_killed_at_any_moment_the_record_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    """Publishers of one generation are killed with -9 while they write; readers see whole records, and no lock is
    lost."""
    root = str(tmp_path / "agents")
    directory = FilesDirectory(root)
    directory.change(GPU, publish(a_record(), 3600))
    with RacePool(partial(FilesDirectory, root), processes=True) as pool:  # type: ignore[arg-type]
        for _ in range(30):
            racer = pool.start(_publish_for_ever)  # type: ignore[arg-type]
            racer.report()
            racer.kill()
            lookup = directory.read(GPU)
            assert lookup.record is not None, lookup.reason
            directory.change(GPU, refresh("generation-1"))
    assert sorted(os.listdir(tmp_path / "agents" / "live_agents" / GPU)) == ["mam.json", "record.json"]


def _publish_for_ever(directory: FilesDirectory, report: Callable[[object], None]) -> None:
    while True:
        directory.change(GPU, publish(a_record(groups={"mailbox": {"text": "x" * 50_000}}), 3600))
        report(None)
