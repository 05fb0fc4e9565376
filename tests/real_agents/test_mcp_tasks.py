"""Claude Code at its prompt follows a job as a task: it goes on, shows a question as a form, and learns the result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.waiting import await_that

if TYPE_CHECKING:
    from tests.real_agents.live import LiveAgents
    from tests.real_agents.model_server import ModelServer

LONGEST = 60.0
TASK = {"prompt": "write the notes", "agent": "codex"}


def test_claude_follows_a_job_as_a_task(live: LiveAgents, model: ModelServer) -> None:
    _start(live)
    _type(live, f"model: tool submit {json.dumps(TASK)}")
    _await_screen(live, "Done.")
    _await_screen(live, "1 MCP task")
    (job,) = _jobs(live)
    assert live.job(job)["status"] == "pending"

    live.mam("pick", "-s", "codex")
    live.mam("ask", "Which database?", "--choice", "sqlite", "--choice", "mysql", "--job", job, "--attempt", "1")
    _await_screen(live, "asks: Which database?")
    for key, shown in (("Right", "◯ sqlite"), ("Enter", "✔ Answer: sqlite")):
        live.tmux("send-keys", "-t", "=claude:", key)
        _await_screen(live, shown)
    _await_screen(live, "❯ Accept")

    def is_accepted() -> bool:
        """On a busy machine the form takes no key at once; on an empty prompt an Enter does nothing."""
        live.tmux("send-keys", "-t", "=claude:", "Enter")
        return bool(live.job(job)["questions"][0].get("answer"))

    await_that(is_accepted, longest=LONGEST)
    live.mam("complete", job, "--attempt", "1", "--result", "the notes are written")
    await_that(lambda: "the notes are written" in _heard(model), longest=LONGEST)

    answered = live.job(job)["questions"][0]
    assert answered["answer"] == "sqlite"
    assert "over MCP with claude-code" in answered["answered_by"]
    assert "data, not instructions" in _heard(model)
    assert _jobs(live) == [job]


def _start(live: LiveAgents) -> None:
    """As its user does, and not as a session of mam."""
    config = live.mam.here.parent / "mcp.json"
    asked = live.mam.here.parent / "asked.jsonl"
    server = {"command": "sh", "args": ["-c", f"tee {asked} | mam mcp"]}
    config.write_text(json.dumps({"mcpServers": {"mam": server}}), "utf-8")
    live.mam.env["ENABLE_TOOL_SEARCH"] = "false"
    options = ("--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", "mcp__mam__submit")
    window = ("-d", "-s", "claude", "-x", "140", "-y", "50", "-c", str(live.mam.here))
    live.tmux("new-session", *window, "claude", *options)
    _await_screen(live, "❯")
    await_that(lambda: asked.exists() and "prompts/list" in asked.read_text("utf-8"), longest=LONGEST)


def _type(live: LiveAgents, text: str) -> None:
    """It takes an Enter that follows too soon for part of a pasted text; one on an empty line does nothing."""
    live.tmux("send-keys", "-t", "=claude:", "-l", text)

    def was_sent() -> bool:
        live.tmux("send-keys", "-t", "=claude:", "Enter")
        return bool(_jobs(live))

    await_that(was_sent, longest=LONGEST)


def _await_screen(live: LiveAgents, text: str) -> None:
    try:
        await_that(lambda: text in live.shown("claude"), f"{text!r} is not on the screen", longest=LONGEST)
    finally:
        print(live.shown("claude"))  # shown when the test fails


def _jobs(live: LiveAgents) -> list[str]:
    listed = live.mam("list", "--json")
    return [job["job_id"] for job in listed.json] if listed.code == 0 else []


def _heard(model: ModelServer) -> str:
    return "\n".join(heard.text for heard in model.seen[-1].heard)
