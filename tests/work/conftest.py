"""One guardian for a test, ended after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.machine.processes import identify
from mam.work.process.runner import GuardianClient
from tests.work.support import PidPipe, await_gone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def guardian() -> Iterator[GuardianClient]:
    with GuardianClient() as guardian:
        yield guardian
        pid = guardian.pid
        process = None if pid is None else identify(pid)
    await_gone([] if process is None else [process])


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[PidPipe]:
    pids = PidPipe(tmp_path)
    yield pids
    pids.close()


@pytest.fixture
def log(tmp_path: Path) -> str:
    return str(tmp_path / "log")
