"""A tmux server for one test, with agents at their prompts and workers that serve them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.agents.sessions import LONGEST, Sessions
from tests.cli.command import Mam
from tests.waiting import await_that

HERE = Path(__file__).parent
RECORDED = {"claude-code": HERE / "claude-hooks.jsonl", "codex": HERE / "codex-hooks.jsonl"}


class LiveHarness(Sessions):
    def __init__(self, mam: Mam, folder: Path) -> None:
        super().__init__(mam, folder)
        mam.env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), mam.env["PATH"]])
        mam.env["XDG_STATE_HOME"] = str(mam.home / "state")
        mam("init")
        self._workers: list[subprocess.Popen[bytes]] = []

    def agent(self, name: str = "claude", tool: str = "claude-code", *words: str, given: tuple[str, ...] = ()) -> str:
        """A session at its prompt; its generation."""
        started = self.mam("agents", "start", name, "--agent", tool, *words, "--", *self.script(name, tool), *given)
        generation = started.line.split("\t")[1]
        await_that(lambda: "ready" in self.heard(name))
        return generation

    def script(self, name: str, tool: str) -> list[str]:
        path = self.folder / name
        text = f"#!{sys.executable}\nimport sys\nsys.path[:0] = [{str(HERE.parents[1])!r}]\n"
        text += (
            f"from tests.live.agent import main\nmain({str(RECORDED[tool])!r}, {str(self.log(name))!r}, sys.argv[1:])\n"
        )
        path.write_text(text, "utf-8")
        path.chmod(0o700)
        return [str(path)]

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def heard(self, name: str = "claude") -> list[str]:
        """What the agent noted: every line that it was given, and what became of it."""
        with contextlib.suppress(FileNotFoundError):
            return self.log(name).read_text("utf-8").splitlines()
        return []

    def typed(self, name: str = "claude") -> list[str]:
        return [line[5:] for line in self.heard(name) if line.startswith("line ")]

    def register(self, prompt: str, *words: str, name: str = "claude", tool: str = "claude-code") -> str:
        return self.mam("register", prompt, "--agent", tool, "--agent-session", f"tmux:{name}", *words).line

    def job(self, job_id: str) -> dict[str, Any]:
        job: dict[str, Any] = self.mam("get", job_id, "--json").json
        return job

    def await_status(self, job_id: str, *statuses: str) -> dict[str, Any]:
        await_that(lambda: self.job(job_id)["status"] in statuses)
        return self.job(job_id)

    def work(self, *words: str, name: str = "claude") -> subprocess.Popen[bytes]:
        worker = self.mam.start("worker", "--in", name, "--lease", "3", *words)
        self._workers.append(worker)
        return worker

    def drain(self, *words: str, name: str = "claude") -> str:
        """A worker until there is nothing to do; what it said."""
        worker = self.work("--drain", *words, name=name)
        _, said = worker.communicate(timeout=LONGEST)
        assert worker.returncode == 0, said
        return said.decode()

    def events(self, job_id: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.mam("logs", job_id, "--json").out.splitlines()]
        return [line["payload"] for line in lines if line.get("event") == "published"]

    def end(self, worker: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> None:
        worker.send_signal(number)
        worker.communicate(timeout=LONGEST)

    def close(self) -> None:
        for worker in self._workers:
            if worker.poll() is None:
                self.end(worker)
            for stream in (worker.stdout, worker.stderr):
                if stream is not None:
                    stream.close()
        super().close()
