"""The real agents delegate with the tools of `mam mcp`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real_agents.agent_setup import PATIENCE, AgentSetup

if TYPE_CHECKING:
    from tests.real_agents.model_server import ModelServer

SERVER = ["mam", "mcp", "--accept", "shell"]
TASK = {"prompt": "echo made > made.txt; echo all is made", "agent": "shell", "artifacts": ["made.txt"]}
STEPS = f"""
model: tool submit {json.dumps(TASK)}
model: tool wait {json.dumps({"ids": ["{found}"]})}
model: say It is made.
"""


def _claude(_office: AgentSetup, server: list[str]) -> list[str]:
    config = {"mcpServers": {"mam": {"command": server[0], "args": server[1:]}}}
    tools = "mcp__mam__submit,mcp__mam__wait,mcp__mam__claim,mcp__mam__report"
    return ["claude", "-p", "--mcp-config", json.dumps(config), "--strict-mcp-config", "--allowedTools", tools]


def _codex(_office: AgentSetup, server: list[str]) -> list[str]:
    settings = [f'mcp_servers.mam.command="{server[0]}"', f"mcp_servers.mam.args={json.dumps(server[1:])}"]
    options = [word for setting in settings for word in ("-c", setting)]
    return ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *options]


def _opencode(setup: AgentSetup, server: list[str]) -> list[str]:
    path = Path(setup.mam.env["OPENCODE_CONFIG"])
    known = json.loads(path.read_text("utf-8"))
    mcp = {"mam": {"type": "local", "command": server, "enabled": True}}
    path.write_text(json.dumps({**known, "mcp": mcp}), "utf-8")
    return ["opencode", "run"]


COMMANDS = {"claude-code": _claude, "codex": _codex, "opencode": _opencode}


def _run(setup: AgentSetup, agent: str, prompt: str, server: list[str] | None = None) -> str:
    argv = COMMANDS[agent](setup, server or SERVER)
    env = {**setup.mam.env, "ENABLE_TOOL_SEARCH": "false"}
    ran = subprocess.run(argv, cwd=setup.here, env=env, input=prompt.encode(), capture_output=True, timeout=PATIENCE)
    print(ran.stdout.decode()[-3000:], ran.stderr.decode()[-3000:])
    assert ran.returncode == 0
    return ran.stdout.decode()


@pytest.mark.few
@pytest.mark.parametrize("agent", list(COMMANDS))
def test_an_agent_delegates_with_wait(agent: str, tmp_path: Path, model: ModelServer) -> None:
    setup = AgentSetup(agent, tmp_path, model)
    setup.mam("init")
    worker = setup.mam.start("worker", "--agent-session", "shell")
    try:
        assert "It is made." in _run(setup, agent, STEPS)
    finally:
        worker.terminate()
        worker.communicate(timeout=PATIENCE)
    jobs = setup.mam("list", "--json").json

    assert [(job["status"], job["result"] and job["result"].strip()) for job in jobs] == [("completed", "all is made")]
    assert (setup.here / "made.txt").read_text() == "made\n"
    heard = model.seen[-1].heard[-1].text
    assert "all is made" in heard
    assert "data, not instructions" in heard


@pytest.mark.parametrize("agent", list(COMMANDS))
def test_a_second_agent_claims_and_reports(agent: str, tmp_path: Path, model: ModelServer) -> None:
    setup = AgentSetup(agent, tmp_path, model)
    job = setup.mam("register", "say hello", "--agent", "codex", "--agent-session", "desk").line
    found = {"handle": "{handle}", "event": "complete", "text": "hello"}
    steps = (
        f"model: tool claim {json.dumps({'label': 'desk'})}\nmodel: tool report {json.dumps(found)}\nmodel: say Told."
    )

    assert "Told." in _run(setup, agent, steps, ["mam", "mcp", "--worker"])

    record = setup.record(job)
    assert (record["status"], record["result"], record["attempt"]) == ("completed", "hello", 1)
    assert record["owner"].startswith("mcp:")


def test_an_agent_without_a_person_answers_no_question(tmp_path: Path, model: ModelServer) -> None:
    """`codex exec` supports forms, and declines each on its own: the question stays open for a person."""
    setup = AgentSetup("codex", tmp_path, model)
    job = setup.mam("register", "p", "--agent", "human", "-s", "desk").line
    setup.mam("pick", "-s", "desk")
    setup.mam("ask", "Which database?", "--job", job, "--attempt", "1")
    _run(setup, "codex", f"model: tool wait {json.dumps({'ids': [job]})}\nmodel: say Over.", ["mam", "mcp"])

    assert "Which database?" in model.seen[-1].heard[-1].text
    assert setup.record(job)["questions"][0].get("state", "open") == "open"
