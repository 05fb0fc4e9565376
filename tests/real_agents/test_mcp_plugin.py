"""The real agents with the plugin, as `mam plugin install` writes it: its tools, its hooks, and no hook twice."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mam.agents.hook_setup import CODEX_EVENTS, codex_trust
from tests.real_agents.agent_setup import PATIENCE, AgentSetup
from tests.waiting import await_that

if TYPE_CHECKING:
    from tests.real_agents.live import LiveAgents
    from tests.real_agents.model_server import ModelServer

LONGEST = 60.0
COMMANDS = {
    "claude-code": ["claude", "-p", "--allowedTools", "mcp__plugin_mam_mam__submit,Bash"],
    "codex": ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
}
SUBMIT = f"model: tool submit {json.dumps({'prompt': 'write the notes', 'agent': 'human', 'detach': True})}"


def _setup(agent: str, tmp_path: Path, model: ModelServer) -> AgentSetup:
    setup = AgentSetup(agent, tmp_path, model)
    setup.mam("init")
    assert setup.mam("plugin", "install", "--agent", agent, "--yes").code == 0
    return setup


def _run(setup: AgentSetup, prompt: str, **env: str) -> None:
    whole = {**setup.mam.env, "ENABLE_TOOL_SEARCH": "false", **env}
    argv = COMMANDS.get(setup.agent, ["opencode", "run"])
    ran = subprocess.run(argv, cwd=setup.here, env=whole, input=prompt.encode(), capture_output=True, timeout=PATIENCE)
    print(ran.stdout.decode()[-3000:], ran.stderr.decode()[-3000:])
    assert ran.returncode == 0


@pytest.mark.few
@pytest.mark.parametrize("agent", [*COMMANDS, "opencode"])
def test_an_agent_with_the_plugin_has_its_tools(agent: str, tmp_path: Path, model: ModelServer) -> None:
    setup = _setup(agent, tmp_path, model)
    _run(setup, SUBMIT)

    assert [job["prompt"] for job in setup.mam("list", "--json").json] == ["write the notes"]


@pytest.mark.parametrize("agent", list(COMMANDS))
def test_the_hooks_report_from_a_job_that_its_user_claimed(agent: str, tmp_path: Path, model: ModelServer) -> None:
    setup = _setup(agent, tmp_path, model)
    job = setup.mam("register", "p", "--agent", agent, "-s", "desk").line
    claim = setup.mam("pick", "-s", "desk", "--json").json
    held = {"MAM_JOB_ID": job, "MAM_ATTEMPT": str(claim["attempt"]), "MAM_CLAIM": claim["claim_id"]}
    _run(setup, "model: run echo hello\nmodel: say Done.", **held)

    hooks = _hooks_of(setup, job)
    assert {"UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"} <= set(hooks)
    assert hooks.count("Stop") == hooks.count("UserPromptSubmit") == 1


def test_codex_takes_the_same_tree_as_a_plugin(tmp_path: Path, model: ModelServer) -> None:
    """Its user trusts the hooks in Codex, which records the hash that it shows."""
    setup = AgentSetup("codex", tmp_path, model)
    setup.mam("init")
    settings = Path(setup.mam.env["CODEX_HOME"]) / "config.toml"
    before = settings.read_text("utf-8")
    setup.mam("plugin", "install", "--agent", "codex", "--yes")
    settings.write_text(before, "utf-8")  # the tree alone
    settings.write_text(settings.read_text("utf-8").replace("plugins = false", "plugins = true"), "utf-8")
    for words in (("marketplace", "add", f"{setup.mam.home}/data/mam/plugin"), ("add", "mam@mam-jobs")):
        subprocess.run(["codex", "plugin", *words], cwd=setup.here, env=setup.mam.env, check=True, timeout=PATIENCE)
    with settings.open("a", encoding="utf-8") as file:
        for event in CODEX_EVENTS:
            label, trusted = codex_trust(event, 'sh "${CLAUDE_PLUGIN_ROOT}/hooks/report.sh"')
            file.write(f'[hooks.state."mam@mam-jobs:hooks/hooks.json:{label}:0:0"]\ntrusted_hash = "{trusted}"\n')
    job = setup.mam("register", "p", "--agent", "codex", "-s", "desk").line
    claim = setup.mam("pick", "-s", "desk", "--json").json
    _run(setup, "model: tool list {}", MAM_JOB_ID=job, MAM_ATTEMPT="1", MAM_CLAIM=claim["claim_id"])

    assert "mcp__mam.submit" in model.seen[-1].tools
    assert {"UserPromptSubmit", "Stop"} <= set(_hooks_of(setup, job))
    assert "codex hook" in setup.mam("logs", job, "--json").out


@pytest.mark.parametrize("agent", list(COMMANDS))
def test_elsewhere_the_hooks_report_nothing(agent: str, tmp_path: Path, model: ModelServer) -> None:
    setup = _setup(agent, tmp_path, model)
    job = setup.mam("register", "p", "--agent", agent, "-s", "desk").line
    setup.mam("pick", "-s", "desk")
    _run(setup, "model: run echo hello\nmodel: say Done.")

    assert _hooks_of(setup, job) == []


def _hooks_of(setup: AgentSetup, job: str) -> list[str]:
    lines = [json.loads(line) for line in setup.mam("logs", job, "--json").out.splitlines()]
    events = [line.get("payload") or line for line in lines]
    return [event["data"]["hook"] for event in events if "hook" in (event.get("data") or {})]


def test_a_session_that_its_user_started_shows_its_state_once_adopted(live: LiveAgents) -> None:
    assert live.mam("plugin", "install", "--agent", "claude-code", "--yes").code == 0
    live.tmux("new-session", "-d", "-s", "mine", "-c", str(live.mam.here), "claude")
    await_that(lambda: "❯" in live.shown("mine"), longest=LONGEST)
    assert live.mam("agents", "adopt", "claude", "--session", "mine", "--agent", "claude-code").code == 0
    _type(live, "mine", "model: run touch asked.txt && echo please >asked.txt")
    await_that(lambda: live.state_of("claude")["state"] == "needs permission", longest=LONGEST)
    asks = live.state_of("claude")
    live.tmux("send-keys", "-t", "=mine:", "Enter")
    await_that(lambda: live.state_of("claude")["state"] == "done", longest=LONGEST)

    assert asks["source"] == live.state_of("claude")["source"] == "hook"


def test_a_session_that_mam_started_reports_each_hook_once(live: LiveAgents) -> None:
    assert live.mam("plugin", "install", "--agent", "claude-code", "--yes").code == 0
    live.start_agent("claude")
    _type(live, "claude", "model: say Done.")
    await_that(lambda: live.state_of("claude")["why"] == "its turn ended", longest=LONGEST)

    root = next(live.agents.glob("sessions/*"))
    (log,) = root.glob("hooks-*.jsonl")
    hooks = [json.loads(line)["hook_event_name"] for line in log.read_text("utf-8").splitlines()]
    assert hooks == ["SessionStart", "UserPromptSubmit", "Stop"]


def _type(live: LiveAgents, session: str, text: str) -> None:
    live.tmux("send-keys", "-t", f"={session}:", "-l", text)
    await_that(lambda: text in live.shown(session), longest=LONGEST)

    def was_taken() -> bool:
        live.tmux("send-keys", "-t", f"={session}:", "Enter")
        return "esc to interrupt" in live.shown(session) or f"❯ {text}" not in live.shown(session).splitlines()[-6:]

    await_that(was_taken, longest=LONGEST)
