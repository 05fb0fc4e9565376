"""Runs the old scripts as a user does: in another process and directory, without the environment of the test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"


class Shell:
    """Runs commands in a working directory."""

    def __init__(self, here: Path) -> None:
        self.here = here
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(here)}

    def run(self, *words: str, python: Sequence[str] = (sys.executable,)) -> subprocess.CompletedProcess[str]:
        """`python scripts/<words>`, whatever comes of it."""
        script, *arguments = words
        return subprocess.run(
            [*python, str(SCRIPTS / script), *arguments],
            cwd=self.here, env=self.environment, capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip

    def code(self, text: str) -> str:
        """What a program prints that imports the old scripts."""
        done = subprocess.run(
            [sys.executable, "-c", text],
            cwd=self.here, env={**self.environment, "PYTHONPATH": str(SCRIPTS)},
            capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(autouse=True)
def no_user_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls in the test's process do not read the settings of the user who runs the tests."""
    for name in [name for name in os.environ if name.startswith("MAM_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("DELEGATE_JOB_LOGS_DIR", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
