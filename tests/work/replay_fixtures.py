"""A recorded agent of each kind on PATH, and a worker on a files store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from mam.stores.files.store import FilesStore, create_files_store
from tests.work.agent_facts import TESTED
from tests.work.replay import Replay
from tests.work.shop import Shop

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=TESTED)
def replay(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Replay:
    replay = Replay(request.param, tmp_path)
    monkeypatch.setenv("PATH", f"{replay.folder}:{os.environ['PATH']}")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return replay


@pytest.fixture(name="shop")
def files_shop(tmp_path: Path) -> Shop:
    create_files_store(str(tmp_path / "jobs"))
    return Shop(FilesStore(str(tmp_path / "jobs")), tmp_path)
