"""The programs themselves: they run without an account, and do what the scripted model tells them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.real_agents.homes import CLIS, environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real_agents.model_server import ModelServer

PLAIN = {
    "claude-code": ("claude", "-p", "--permission-mode", "acceptEdits"),
    "codex": ("codex", "exec", "--skip-git-repo-check", "--sandbox", "workspace-write", "-"),
    "opencode": ("opencode", "run"),
}


@pytest.mark.parametrize("agent", PLAIN)
def test_an_agent_follows_the_scripted_model(agent: str, model: ModelServer, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    program, *words = PLAIN[agent]

    ran = subprocess.run(
        [str(CLIS / program), *words], input=b"model: write notes.txt it was me\nmodel: say All written.",
        env=environment(agent, tmp_path / "home", model.url), cwd=here, capture_output=True, timeout=120,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert (here / "notes.txt").read_text() == "it was me\n"
    assert b"All written." in ran.stdout
