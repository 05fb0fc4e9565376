"""One agent with a store, a directory and the command `mam`, isolated from everything else."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.cli.command import Mam, finish
from tests.real_agents.homes import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from subprocess import Popen

    from tests.real_agents.model_server import ModelServer

PATIENCE = 280.0
PRICES = "[prices.codex]\ninput = 1.25\ncached = 0.125\noutput = 10.0\n"
"""For the agent that tells no cost."""


class AgentSetup:
    def __init__(self, agent: str, folder: Path, model: ModelServer, store: str | None = None) -> None:
        self.agent = agent
        self.model = model
        self.here = folder / "project"
        self.here.mkdir()
        self.mam = Mam(self.here, folder / "home")
        env = environment(agent, folder / "home", model.url)
        env["PATH"] = f"{os.path.dirname(sys.executable)}:{env['PATH']}"
        settings = folder / "home/config/mam/config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(PRICES, "utf-8")
        self.mam.env = {**env, **({} if store is None else {"MAM_STORE": store})}

    def shell_finds_mam(self) -> None:
        """Also a login shell, which sets its own PATH."""
        (self.mam.home / ".profile").write_text(f"PATH={os.path.dirname(sys.executable)}:$PATH\n", "utf-8")

    def job(self, prompt: str, *words: str) -> str:
        return self.mam("register", prompt, "--agent", self.agent, *words).line

    def record(self, job: str) -> dict[str, Any]:
        return self.mam.record(job)

    def wait_until_ended(self, *jobs: str) -> None:
        self.mam.start("wait", *jobs).communicate(timeout=PATIENCE)

    @contextmanager
    def at_work(self, *words: str) -> Iterator[Popen[bytes]]:
        """A worker for this agent's jobs, which is stopped at the end."""
        worker = self.mam.start("worker", "--agent-session", self.agent, *words)
        try:
            yield worker
        finally:
            worker.terminate()
            print(finish(worker).stderr)  # shown when the test fails

    def done(self, prompt: str, *words: str) -> dict[str, Any]:
        """The record of a job after a worker has had it."""
        job = self.job(prompt, *words)
        with self.at_work():
            self.wait_until_ended(job)
        print(self.mam("output", job).out[-3000:])
        return self.record(job)
