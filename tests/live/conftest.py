from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.cli.command import Mam
from tests.live.harness import LiveHarness


@pytest.fixture
def harness(mam: Mam) -> Iterator[LiveHarness]:
    with TemporaryDirectory(prefix="mam-l-") as folder:
        harness = LiveHarness(mam, Path(folder))
        yield harness
        harness.close()
