"""A world with the real programs at their prompts in tmux."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.agents.sessions import Sessions
from tests.cli.command import Mam
from tests.real_agents.homes import MODELS, environment
from tests.waiting import await_that

if TYPE_CHECKING:
    import subprocess

LONGEST = 280.0
TOOLS = {"claude": "claude-code", "codex": "codex", "opencode": "opencode"}
PROMPTS = {"claude": "❯", "codex": "›", "opencode": "Ask anything"}
"""What is on the screen when one can type."""


class LiveAgents(Sessions):
    """All three in one world; the tmux server hands its environment on to them."""

    def __init__(self, mam: Mam, folder: Path, url: str) -> None:
        super().__init__(mam, folder)
        for agent in MODELS:
            mam.env |= environment(agent, mam.home, url)
        mam.env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), mam.env["PATH"]])
        self._trust(mam.home / ".claude" / ".claude.json")
        mam("init")

    def _trust(self, path: Path) -> None:
        known = json.loads(path.read_text("utf-8"))
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        path.write_text(json.dumps({**known, "projects": {str(self.mam.here): trusted}}), "utf-8")

    def start_agent(self, name: str, *words: str, hooks: bool = True) -> None:
        """At its prompt; with the words, or with what lets it work in its directory without a question."""
        own = {
            "claude": words or ("--permission-mode", "acceptEdits"),
            "codex": words or ("--sandbox", "workspace-write", "--ask-for-approval", "never"),
            "opencode": words,
        }[name]
        if name == "codex":
            own = ("-c", f'projects={{"{self.mam.here}"={{trust_level="trusted"}}}}', *own)
        options = () if hooks else ("--no-hooks",)
        assert self.mam("agents", "start", name, "--agent", TOOLS[name], *options, "--", name, *own).code == 0
        await_that(lambda: PROMPTS[name] in self.shown(name), longest=LONGEST)

    def opencode_settings(self, **more: Any) -> None:
        """The user's own."""
        path = Path(self.mam.env["OPENCODE_CONFIG"])
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **more}), "utf-8")

    def shown(self, name: str) -> str:
        return self.tmux("capture-pane", "-p", "-t", f"={name}:")

    def state_of(self, name: str) -> dict[str, Any]:
        state: dict[str, Any] = self.status(name)["state"]
        return state

    def register(self, name: str, *steps: str, **options: str) -> str:
        words = [word for option, value in options.items() for word in (f"--{option}", value)]
        prompt = "\n".join(f"model: {step}" for step in steps)
        return self.mam("register", prompt, "--agent", TOOLS[name], "--agent-session", f"tmux:{name}", *words).line

    def job(self, job_id: str) -> dict[str, Any]:
        job: dict[str, Any] = self.mam("get", job_id, "--json").json
        return job

    def worker(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        return self.mam.start("worker", "--in", name, *words)


def finish(worker: subprocess.Popen[bytes]) -> str:
    _, said = worker.communicate(timeout=LONGEST)
    assert worker.returncode == 0, said.decode()
    return said.decode()
