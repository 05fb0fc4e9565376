"""Every verb of mam that writes, as a command that can be killed; and who kills those that need more than a command.

`test_verbs.py` sees to it that no verb is missing: a new one has to be put here, or called a reader.
"""

from __future__ import annotations

COMMANDS = {
    "register": "register work --agent codex --agent-session run",
    "register with a key": "register work --agent codex --agent-session run --key {chance}",
    "pick": "pick --agent-session run",
    "pick in a session": "pick --agent-session run --agent-id gpu --generation {generation}",
    "publish": "publish {running} progress --attempt {attempt}",
    "publish started": "publish {pending} started",
    "heartbeat": "heartbeat {running} --attempt {attempt}",
    "complete": "complete {running} --attempt {attempt} --result r",
    "fail": "fail {running} --attempt {attempt} --reason r",
    "fail retryably": "fail {running} --attempt {attempt} --reason r --retryable",
    "release": "release {running} --attempt {attempt}",
    "cancel": "cancel {pending}",
    "retry": "retry {ended}",
    "set a status": "status {pending} --set completed",
    "pause": "pause --agent somebody",
    "resume": "resume --agent somebody",
    "prune": "prune --older-than 0s",
    "init": "init",
    "agents publish": "agents publish gpu --id gpu --session gpu --manifest /m.json --generation {generation}",
    "agents refresh": "agents refresh --id gpu --generation {generation}",
    "agents remove": "agents remove --id gpu --generation {generation}",
    "agents cleanup": "agents cleanup",
    "config set": "config set on_idle stop",
    "config unset": "config unset on_idle",
    "trust": "trust .mam/config.toml",
    "skill install": "skill install --user --yes",
}
"""In a life that goes on: {running}, {pending} and {ended} are jobs of it."""

ELSEWHERE = {
    "run": "work/test_run_command.py",
    "worker": "work/test_worker_kills.py",
    "hook": "live/test_taking_over.py",
    "relay": "bus/test_relay.py",
    "subscribe": "bus/test_subscribe_all.py",
    "inbox once": "inbox/test_kills.py",
    "inbox watch": "inbox/test_dropping.py",
    "migrate": "moving/test_kills.py",
    "workspaces": "work/test_removing.py",
    "agents start": "agents/test_sessions.py",
    "agents stop": "agents/test_sessions.py",
    "agents restart": "agents/test_sessions.py",
    "agents adopt": "agents/test_companion.py",
    "agents send": "agents/test_send.py",
}
"""Those that start processes or need a broker: the file below tests/ that kills them, or what they have started."""

READERS = {
    "watch", "list", "wait", "result", "output", "logs", "get", "broker", "explain", "brief", "where", "doctor",
    "completion", "stats", "demo", "service", "agents resolve", "agents list", "agents show", "agents attach",
    "agents status", "agents check", "skill show", "inbox status", "config list", "config get", "config path",
}  # fmt: skip
"""They change nothing that could be lost. `doctor --fix` makes anew what is a copy, `stats` keeps a cache, `demo` has a
store of its own that ends with it."""

SAME = {"admin cleanup": "agents cleanup", "config edit": "config set"}
"""Verbs that write what another one writes, by the same function."""
