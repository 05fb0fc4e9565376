"""Kills while a real agent waits for its job over MCP. Nothing is lost, and nothing happens twice."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.real_agents.agent_setup import PATIENCE, AgentSetup
from tests.serve.process import ServerProcess
from tests.waiting import await_that

if TYPE_CHECKING:
    from tests.real_agents.model_server import ModelServer

Json = dict[str, Any]
LONGEST = 120.0
COMMAND = "echo begun >>begun.txt; read word <gate; echo done >>effects.txt; echo all of it"


@dataclass
class Client:
    """A session of Claude Code that submits the task and waits."""

    process: subprocess.Popen[bytes]

    def kill_server(self) -> None:
        for pid in _children(self.process.pid):
            if b"mam\0mcp" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, 9)
                return
        raise AssertionError("the agent has no mam mcp")

    def end(self) -> None:
        said, _ = self.process.communicate(timeout=PATIENCE)
        assert b"Over." in said


def _children(pid: int) -> list[int]:
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()]
    return [*found, *(grandchild for child in found for grandchild in _children(child))]


def _client(setup: AgentSetup, server: Json) -> Client:
    """The key makes the task of every session the same job."""
    task = {"prompt": COMMAND, "agent": "shell", "key": "the-task", "workdir": str(setup.here)}
    wait = {"ids": ["{found}"]}
    steps = f"model: tool submit {json.dumps(task)}\nmodel: tool wait {json.dumps(wait)}\nmodel: say Over."
    tools = "mcp__mam__submit,mcp__mam__wait"
    config = json.dumps({"mcpServers": {"mam": server}})
    argv = ["claude", "-p", steps, "--mcp-config", config, "--strict-mcp-config", "--allowedTools", tools]
    env = {**setup.mam.env, "ENABLE_TOOL_SEARCH": "false"}
    return Client(subprocess.Popen(argv, cwd=setup.here, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))


def _worker(setup: AgentSetup) -> subprocess.Popen[bytes]:
    return setup.mam.start("worker", "--label", "shell", "--lease", "15")


def _await_wait(setup: AgentSetup) -> str:
    """Until the agent waits for its job, which runs. Returns the job."""
    await_that(lambda: len(setup.model.seen) >= 2 and (setup.here / "begun.txt").exists(), longest=LONGEST)
    (job,) = setup.mam("list", "--json").json
    return str(job["job_id"])


def _open_the_gate(setup: AgentSetup, job: str, attempt: int) -> None:
    """When this attempt waits at it."""
    await_that(lambda: setup.record(job)["attempt"] == attempt, longest=LONGEST)
    await_that(lambda: len((setup.here / "begun.txt").read_text("utf-8").split()) == attempt, longest=LONGEST)
    with (setup.here / "gate").open("w", encoding="utf-8") as gate:
        gate.write("go\n")


@pytest.mark.parametrize("victims", ["agent", "server", "worker", "agent server worker"])
def test_kills_over_stdio(tmp_path: Path, model: ModelServer, victims: str) -> None:
    setup = AgentSetup("claude-code", tmp_path, model)
    setup.mam("init")
    os.mkfifo(setup.here / "gate")
    server: Json = {"command": "mam", "args": ["mcp", "--accept", "shell"]}
    worker, client = _worker(setup), _client(setup, server)
    job = _await_wait(setup)
    if "server" in victims:
        client.kill_server()
    if "agent" in victims:
        client.process.kill()
        client.process.communicate()
    if "worker" in victims:
        worker.kill()
        worker.communicate()
        worker = _worker(setup)
    _finish(setup, client, worker, job, victims, server)


@pytest.mark.parametrize("victims", ["server", "agent server worker"])
def test_kills_over_http(tmp_path: Path, model: ModelServer, victims: str) -> None:
    setup = AgentSetup("claude-code", tmp_path, model)
    setup.mam("init")
    os.mkfifo(setup.here / "gate")
    token = setup.mam("token", "create", "t", "--scope", "submit", "--agent", "shell").line
    served = ServerProcess(setup.mam, ())
    port = str(served.port)
    headers = {"Authorization": f"Bearer {token}"}
    server: Json = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp", "headers": headers}
    worker, client = _worker(setup), _client(setup, server)
    job = _await_wait(setup)
    served.process.kill()
    served.process.communicate()
    if "agent" in victims:
        client.process.kill()
        client.process.communicate()
    if "worker" in victims:
        worker.kill()
        worker.communicate()
        worker = _worker(setup)
    again = setup.mam.start("serve", "--port", port)
    try:
        _finish(setup, client, worker, job, victims, server)
    finally:
        again.terminate()
        again.communicate(timeout=PATIENCE)


def _finish(
    setup: AgentSetup,
    client: Client,
    worker: subprocess.Popen[bytes],
    job: str,
    victims: str,
    server: Json,
) -> None:
    """Another session repeats the whole task, and gets the job that there is."""
    attempt = 2 if "worker" in victims else 1
    try:
        _open_the_gate(setup, job, attempt)
        if "agent" not in victims:
            client.end()
        _client(setup, server).end()
    finally:
        worker.terminate()
        worker.communicate(timeout=PATIENCE)
    (found,) = setup.mam("list", "--json").json
    assert (found["job_id"], found["status"], found["attempt"]) == (job, "completed", attempt)
    assert "all of it" in setup.model.seen[-1].heard[-1].text
    assert (setup.here / "effects.txt").read_text("utf-8") == "done\n"
    lines = [json.loads(line) for line in setup.mam("logs", job, "--json").out.splitlines()]
    assert [line.get("to") for line in lines].count("completed") == 1
