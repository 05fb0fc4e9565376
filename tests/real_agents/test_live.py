"""The real programs at their prompts in tmux: jobs are typed in, and their own hooks tell what became of them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.sessions import Sessions, await_that
from tests.cli.command import Mam
from tests.real_agents.homes import MODELS, environment

if TYPE_CHECKING:
    import subprocess

    from tests.real_agents.model_server import ModelServer

LONGEST = 240.0


class Live(Sessions):
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

    def claude(self, *words: str) -> None:
        self._started("claude", "claude-code", "claude", *words)

    def codex(self, *words: str) -> None:
        trusted = f'projects={{"{self.mam.here}"={{trust_level="trusted"}}}}'
        self._started("codex", "codex", "codex", "-c", trusted, *words)

    def opencode(self, *words: str) -> None:
        self._started("opencode", "opencode", "opencode", *words)

    def _started(self, name: str, tool: str, *command: str) -> None:
        assert self.mam("agents", "start", name, "--agent", tool, "--", *command).code == 0
        await_that(lambda: self.state_of(name)["source"] == "hook" or "›" in self.shown(name))

    def shown(self, name: str) -> str:
        return self.tmux("capture-pane", "-p", "-t", f"={name}:")

    def state_of(self, name: str) -> dict[str, Any]:
        state: dict[str, Any] = self.status(name)["state"]
        return state

    def register(self, name: str, *steps: str, **options: str) -> str:
        words = [word for option, value in options.items() for word in (f"--{option}", value)]
        prompt = "\n".join(f"model: {step}" for step in steps)
        tool = "claude-code" if name == "claude" else name
        return self.mam("register", prompt, "--agent", tool, "--agent-session", f"tmux:{name}", *words).line

    def job(self, job_id: str) -> dict[str, Any]:
        job: dict[str, Any] = self.mam("get", job_id, "--json").json
        return job

    def worker(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        return self.mam.start("worker", "--in", name, *words)


@pytest.fixture
def live(tmp_path: Path, model: ModelServer) -> Iterator[Live]:
    here, home = tmp_path / "project", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    with TemporaryDirectory(prefix="mam-r-") as folder:
        live = Live(Mam(here, home), Path(folder), model.url)
        yield live
        live.close()


def test_two_live_sessions_serve_ten_jobs_and_their_hooks_tell_so(live: Live) -> None:
    live.claude("--permission-mode", "acceptEdits")
    live.codex("--sandbox", "workspace-write", "--ask-for-approval", "never")
    jobs = {}
    for number in range(5):
        for name in ("claude", "codex"):
            path = f"{name}-{number}.txt"
            steps = (f"write {path} made by {name} {number}", f"say {name} wrote {number}.")
            jobs[live.register(name, *steps, artifact=path)] = (name, number, path)

    workers = {name: live.worker(name, "--drain") for name in ("claude", "codex")}

    for name, worker in workers.items():
        _, said = worker.communicate(timeout=LONGEST)
        assert worker.returncode == 0, (said.decode(), live.shown(name))
    for job_id, (name, number, path) in jobs.items():
        job = live.job(job_id)
        assert (job["status"], job["checked"], job["attempt"]) == ("completed", True, 1), (job, live.shown(name))
        assert job["result"] == f"{name} wrote {number}."
        assert job["run"]["session"]["proof"] == "hook"
        assert job["run"]["turn"]["ended_by"] == "hook"
        assert (live.mam.here / path).read_text("utf-8").strip() == f"made by {name} {number}"
        assert live.state_of(name)["state"] == "done"
        assert live.state_of(name)["source"] == "hook"


def start(live: Live, name: str) -> None:
    if name == "claude":
        live.claude("--permission-mode", "acceptEdits")
    else:
        live.codex("--sandbox", "workspace-write", "--ask-for-approval", "never")


def finish(worker: subprocess.Popen[bytes]) -> str:
    _, said = worker.communicate(timeout=LONGEST)
    assert worker.returncode == 0, said.decode()
    return said.decode()


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_worker_is_killed_and_the_next_one_watches(live: Live, model: ModelServer, name: str) -> None:
    start(live, name)
    job_id = live.register(name, "hang")
    first = live.worker(name, "--lease", "3")
    assert model.hanging.acquire(timeout=LONGEST)
    await_that(lambda: live.job(job_id).get("run") is not None)
    first.kill()
    first.communicate()
    assert live.state_of(name)["state"] == "working"
    second = live.worker(name, "--lease", "3", "--drain")
    await_that(lambda: live.job(job_id)["attempt"] == 2)
    model.release()

    finish(second)

    job = live.job(job_id)
    assert (job["status"], job["result"], job["attempt"]) == ("completed", "Done at last.", 2)
    assert job["run"]["session"]["mark"] == f"{job_id}.1"


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_job_is_called_off_and_the_session_takes_the_next(live: Live, model: ModelServer, name: str) -> None:
    start(live, name)
    job_id = live.register(name, "hang")
    worker = live.worker(name)
    assert model.hanging.acquire(timeout=LONGEST)
    await_that(lambda: live.job(job_id).get("run") is not None)

    assert live.mam("cancel", job_id).code == 0
    after = live.register(name, f"write {name}.txt here", "say And now this.", artifact=f"{name}.txt")

    await_that(lambda: live.job(after)["status"] == "completed")
    worker.terminate()
    worker.communicate()
    assert live.job(job_id)["status"] == "cancelled"
    assert live.job(after)["result"] == "And now this."


def test_permission_is_told_by_a_hook_and_nothing_is_typed_over_the_dialog(live: Live) -> None:
    live.claude()
    first = live.register("claude", "write asked.txt please", "say Thank you.", artifact="asked.txt")
    second = live.register("claude", "say Next.")
    worker = live.worker("claude", "--drain", "--between", "/clear")
    await_that(lambda: live.state_of("claude")["state"] == "needs permission")

    await_that(lambda: live.mam("explain", first, "--json").json["state"]["state"] == "needs permission")
    assert live.mam("explain", first, "--json").json["state"]["source"] == "hook"
    assert live.job(second)["status"] == "pending"
    assert not (live.mam.here / "asked.txt").exists()
    live.tmux("send-keys", "-t", "=claude:", "Enter")

    said = finish(worker)
    assert live.job(first)["status"] == "completed", said
    assert (live.job(second)["status"], live.job(second)["result"]) == ("completed", "Next.")


def test_a_usage_limit_pauses_the_agent(live: Live, model: ModelServer) -> None:
    live.claude("--permission-mode", "acceptEdits")
    model.limit(3600)
    job_id = live.register("claude", "say Not now.")
    worker = live.worker("claude", "--once")
    worker.communicate(timeout=LONGEST)

    job = live.job(job_id)
    assert (job["status"], job["waiting_for"], job["retries"]) == ("waiting", "reset", 0)
    assert job["run"]["turn"]["ended_by"] == "hook"
    (pause,) = live.mam("pause", "--list", "--json").json
    assert pause["agent"] == "claude-code"
