"""How tests wait for other processes: for a condition, or behind a gate that the test opens."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE = 60.0
"""Only so that a broken test ends."""


def await_that(
    condition: Callable[[], object], otherwise: str = "it did not happen", longest: float = PATIENCE
) -> None:
    """For what sends no signal when it becomes true; the only place in which tests poll."""
    ends = time.monotonic() + longest
    while not condition():
        assert time.monotonic() < ends, otherwise
        time.sleep(0.005)


class Gate:
    """A named pipe: each script that runs `wait` stops there until the test opens the gate for it."""

    def __init__(self, directory: Path) -> None:
        path = directory / "gate"
        os.mkfifo(path)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self.wait = f"read go <{path}"
        """A line of shell."""

    def open(self, scripts: int = 1) -> None:
        """Lets so many scripts through, also those that come later."""
        os.write(self._descriptor, b"\n" * scripts)

    def close(self) -> None:
        os.close(self._descriptor)
