"""A recorded agent of each kind on PATH, and a worker on a files store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from mam.stores.files.store import FilesStore, create_files_store
from tests.work.agent_facts import TESTED
from tests.work.replay import Replay
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=TESTED)
def replay(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Replay:
    replay = Replay(request.param, tmp_path)
    monkeypatch.setenv("PATH", f"{replay.folder}:{os.environ['PATH']}")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return replay


@pytest.fixture(name="harness")
def files_harness(tmp_path: Path) -> Harness:
    create_files_store(str(tmp_path / "jobs"))
    return Harness(FilesStore(str(tmp_path / "jobs")), tmp_path)
