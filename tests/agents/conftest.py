from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.agents.sessions import Sessions, Sink
from tests.cli.command import Mam


@pytest.fixture
def sessions(mam: Mam) -> Iterator[Sessions]:
    with TemporaryDirectory(prefix="mam-t-") as folder:
        sessions = Sessions(mam, Path(folder))
        yield sessions
        sessions.close()


@pytest.fixture
def sink(sessions: Sessions) -> Iterator[Sink]:
    sink = Sink(sessions.folder)
    yield sink
    sink.close()
