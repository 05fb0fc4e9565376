from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.cli.command import Mam
from tests.live.stage import Stage


@pytest.fixture
def stage(mam: Mam) -> Iterator[Stage]:
    with TemporaryDirectory(prefix="mam-l-") as folder:
        stage = Stage(mam, Path(folder))
        yield stage
        stage.close()
