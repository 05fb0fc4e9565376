"""`make record-agents`: runs the real agents through what can happen, and keeps what they print for the ordinary tests.

Each is started exactly as its adapter says. Paths and ports of this machine are replaced.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mam.agent_table import CODING_AGENTS
from mam.config.settings import Config
from mam.work.adapters import load_adapter
from mam.work.workdir import WorkDir
from tests.real_agents import model_server
from tests.real_agents.alone import is_alone
from tests.real_agents.homes import CLIS, environment
from tests.real_agents.model_server import ModelServer
from tests.unit.jobs import running
from tests.work.agent_facts import AGENT_FACTS, scenes_of
from tests.work.replay import KEPT

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 100.0
WRITE = "model: write notes.txt it was me\nmodel: say I wrote it."
OAUTH = {"ANTHROPIC_API_KEY": None, "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-not-a-token"}

SCENES: dict[str, tuple[str, str, Callable[[ModelServer], object]]] = {
    "text": ("model: say Hello.", "edit", lambda _model: None),
    "write": (WRITE, "edit", lambda _model: None),
    "denied": (WRITE, "ask", lambda _model: None),
    "limit": (WRITE, "edit", lambda model: model.limit(3600)),
    "overload": (WRITE, "edit", lambda model: setattr(model, "trouble", model_server.overload())),
    "logged_out": (WRITE, "edit", lambda model: setattr(model, "trouble", model_server.logged_out())),
    "unpaid": (WRITE, "edit", lambda model: setattr(model, "trouble", model_server.unpaid())),
    "declined": ("model: refuse I will not do that.", "edit", lambda _model: None),
    "gone": (WRITE, "edit", lambda _model: None),
    "cut": ("model: write notes.txt x\nmodel: hang", "edit", lambda _model: None),
}


def main() -> None:
    assert is_alone(), "run it by `make record-agents`"
    KEPT.mkdir(exist_ok=True)
    os.environ["PATH"] = f"{CLIS}:{os.environ['PATH']}"
    codes = {}
    for agent in CODING_AGENTS:
        for scene in scenes_of(agent):
            codes[f"{agent}-{scene}"] = _record(agent, scene, {})
        _record_help(agent)
    codes["claude-code-plan_limit"] = _record("claude-code", "limit", OAUTH, name="claude-code-plan_limit")
    (KEPT / "exit_codes.json").write_text(json.dumps(codes, indent=2) + "\n", "utf-8")


def _record(agent: str, scene: str, extra: dict[str, str | None], name: str | None = None) -> int:
    prompt, permissions, prepare_workdir = SCENES[scene]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, ModelServer() as model:
        here = Path(folder) / "project"
        here.mkdir()
        prepare_workdir(model)
        env = environment(agent, Path(folder) / "home", model.url)
        env = {key: value for key, value in {**env, **extra}.items() if value is not None}
        launch = _launch(
            agent, prompt, permissions, str(here), AGENT_FACTS[agent].unknown_session if scene == "gone" else None
        )
        process = subprocess.Popen(
            launch[0], env={**env, **launch[1]}, cwd=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(launch[2])
        process.stdin.close()
        process.stdin = None
        if scene == "cut":
            assert model.hanging.acquire(timeout=LONGEST)
            process.send_signal(signal.SIGTERM)
        try:
            out, err = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:  # it would go on trying for hours; its worker ends it
            process.kill()
            out, err = process.communicate()
        for end, text in ((".out", out), (".err", err)):
            (KEPT / f"{name or f'{agent}-{scene}'}{end}").write_bytes(_scrubbed(text, folder))
        print(name or f"{agent}-{scene}", process.returncode, len(out), flush=True)
        return process.returncode


def _record_help(agent: str) -> None:
    """What `mam agents check` asks."""
    module = import_module(CODING_AGENTS[agent].adapter)
    asked = [("--version",), *module.HELP]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        env = environment(agent, Path(folder) / "home", "http://127.0.0.1:1")
        told = {}
        for words in asked:
            ran = subprocess.run(
                [CLIS / CODING_AGENTS[agent].program, *words], env=env, capture_output=True, timeout=LONGEST
            )
            told[" ".join(words)] = (ran.stdout or ran.stderr).decode()
    (KEPT / f"{agent}.help.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _launch(
    agent: str, prompt: str, permissions: str, here: str, session: str | None
) -> tuple[list[str], dict[str, str], bytes]:
    adapter = load_adapter(agent, Config())
    job = running(agent=agent, prompt=prompt, permissions=permissions, may_ask=False)
    if session is not None:
        about = {"name": agent, "session": session}
        job = job.replace(run={"host": os.uname().nodename, "place": here, "agent": about})
    launch = adapter.launch(job, prompt, WorkDir(path=here, kind="workdir"), "")
    assert launch is not None
    return list(launch.argv), launch.env, launch.stdin or b""


def _scrubbed(text: bytes, folder: str) -> bytes:
    text = text.replace(folder.encode(), b"/home/user").replace(folder.lstrip("/").encode(), b"home/user")
    text = text.replace(b"/$bunfs/root", b"/$bunfs")
    return re.sub(rb"127\.0\.0\.1:\d+", b"127.0.0.1:18080", text)


if __name__ == "__main__":
    main()
