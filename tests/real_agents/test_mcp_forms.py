"""Codex, which takes no tasks and has the handshake, shows a question as a form while it waits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.waiting import await_that

if TYPE_CHECKING:
    from tests.real_agents.live import LiveAgents
    from tests.real_agents.model_server import ModelServer

LONGEST = 60.0


def test_codex_shows_a_question_as_a_form_while_it_waits(live: LiveAgents, model: ModelServer) -> None:
    job = live.mam("register", "p", "--agent", "claude-code", "-s", "desk").line
    live.mam("pick", "-s", "desk")
    _start(live)
    steps = f"model: tool wait {json.dumps({'ids': [job]})}"
    live.tmux("send-keys", "-t", "=mine:", "-l", steps)
    await_that(lambda: _enters(live) and model.seen, longest=LONGEST)
    live.mam("ask", "Which database?", "--choice", "sqlite", "--choice", "mysql", "--job", job, "--attempt", "1")
    await_that(lambda: "asks: Which database?" in live.shown("mine"), longest=LONGEST)
    await_that(lambda: _enters(live) and live.job(job)["questions"][0].get("answer"), longest=LONGEST)
    live.mam("complete", job, "--attempt", "1", "--result", "all is written")
    await_that(lambda: "all is written" in model.seen[-1].heard[-1].text, longest=LONGEST)

    answered = live.job(job)["questions"][0]
    assert answered["answer"] == "sqlite"
    assert "over MCP with codex-mcp-client" in answered["answered_by"]


def _start(live: LiveAgents) -> None:
    """As its user does, and not as a session of mam."""
    trust = f'projects={{"{live.mam.here}"={{trust_level="trusted"}}}}'
    settings = (trust, 'mcp_servers.mam.command="mam"', 'mcp_servers.mam.args=["mcp"]')
    options = [word for setting in settings for word in ("-c", setting)]
    window = ("-d", "-s", "mine", "-x", "140", "-y", "50", "-c", str(live.mam.here))
    live.tmux("new-session", *window, "codex", *options, "--sandbox", "workspace-write")
    await_that(lambda: "›" in live.shown("mine"), longest=LONGEST)


def _enters(live: LiveAgents) -> bool:
    """It takes an Enter that follows too soon for part of a pasted text; one on an empty line does nothing."""
    live.tmux("send-keys", "-t", "=mine:", "Enter")
    return True
