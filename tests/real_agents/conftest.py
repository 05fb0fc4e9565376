"""The scripted model, and the assurance that nothing else can be reached."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import Mam
from tests.real_agents.alone import is_alone
from tests.real_agents.live import LiveAgents
from tests.real_agents.model_server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator


HIDDEN_BEFORE = pytest.StashKey[set[Path]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    if not is_alone():
        pytest.exit("the real agents run only where nothing but loopback is: `make test-agents`", returncode=1)
    session.config.stash[HIDDEN_BEFORE] = hidden_directories()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Codex's sandbox protects `.git` in each directory that a command may write to, `/tmp` too, and leaves the empty
    directory behind. Other tests would take it for a repository."""
    if HIDDEN_BEFORE not in session.config.stash:
        return
    before: set[Path] = session.config.stash[HIDDEN_BEFORE]
    for left in hidden_directories() - before:
        try:
            left.rmdir()
        except OSError:
            pass  # not empty, or another process was faster


def hidden_directories() -> set[Path]:
    return {path for path in Path(gettempdir()).glob(".*") if path.is_dir()}


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def live(tmp_path: Path, model: ModelServer) -> Iterator[LiveAgents]:
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    with TemporaryDirectory(prefix="mam-r-") as folder:
        live = LiveAgents(Mam(here, home), Path(folder), model.url)
        yield live
        live.close()
