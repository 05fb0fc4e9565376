"""Every verb of mam that writes, as a command that can be killed, and the tests of those that need more than a command.

`test_verbs.py` reports a verb that is missing here: add it as a command, or to `READERS`.
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
    "ask": "ask Which --job {running} --attempt {attempt}",
    "answer": "answer {running} this",
    "release": "release {running} --attempt {attempt}",
    "cancel": "cancel {pending}",
    "retry": "retry {ended}",
    "continue": "continue {pending} more",
    "seen": "seen {ended} --by anna",
    "edit": "edit {pending} --priority 5 --at +1h",
    "set a status": "status {pending} --set completed",
    "pause": "pause --agent somebody",
    "resume": "resume --agent somebody",
    "prune": "prune --older-than 0s",
    "adopt": "adopt --all",
    "init": "init",
    "agents publish": "agents publish gpu --id gpu --session gpu --manifest /m.json --generation {generation}",
    "agents refresh": "agents refresh --id gpu --generation {generation}",
    "agents remove": "agents remove --id gpu --generation {generation}",
    "agents cleanup": "agents cleanup",
    "config set": "config set on_idle stop",
    "config unset": "config unset on_idle",
    "rules add": "rules add deny -- git push",
    "trust": "trust .mam/config.toml",
    "skill install": "skill install --user --yes",
    "plugin install": "plugin install --agent codex --yes",
    "plugin remove": "plugin remove --yes",
    "register for a worker": "register true --agent shell --agent-session shop --timeout 600",
    "token create": "token create ci-{chance} --scope read",
    "token pair": "token pair phone-{chance} --scope read",
    "worker": "worker --agent-session shop --once --lease 1 --grace 0",
    "inbox once": "inbox once --root root --agent shell --concurrency 0",
    "migrate": "DELEGATE_JOB_LOGS_DIR=logs-of-copies migrate {origin} {moved}",
    "relay": "MQTT_BROKER=127.0.0.1 MQTT_PORT={port} relay --once",
    "hook": "STDIN=hook.json MAM_JOB_ID={running} MAM_ATTEMPT={attempt} hook claude-code",
}
"""{running}, {pending} and {ended} are jobs of a store in use; `surroundings.py` provides what the others need. Words
with = before the verb set its environment, and STDIN is the file that it reads."""

GROUPS = ("agents", "config", "skill", "plugin", "inbox", "rules", "token")
"""Verbs with subverbs."""


def parted(command: str) -> tuple[dict[str, str], list[str]]:
    """The environment of a command, and its words."""
    words = command.split()
    at = next(place for place, word in enumerate(words) if "=" not in word)
    return dict(word.split("=", 1) for word in words[:at]), words[at:]


ELSEWHERE = {
    "mcp": "mcp/test_kills.py",
    "apply": "work/test_apply.py",
    "run": "work/test_run_command.py",
    "serve": "serve/test_process.py",
    "token revoke": "serve/test_token_verbs.py",
    "rebuild": "faults/test_kills.py",
    "subscribe": "bus/test_subscribe_all.py",
    "inbox watch": "inbox/test_dropping.py",
    "workspaces": "work/test_cleanup.py",
    "workers": "cli/test_workers.py",
    "agents start": "agents/test_sessions.py",
    "agents stop": "agents/test_sessions.py",
    "agents restart": "agents/test_sessions.py",
    "agents adopt": "agents/test_companion.py",
    "agents send": "agents/test_send.py",
}
"""Verbs that keep running or start such a process, with the test file that kills it."""

READERS = {
    "watch", "list", "questions", "show", "wait", "result", "output", "artifacts", "logs", "get", "broker", "explain",
    "brief", "where", "doctor",
    "completion", "stats", "demo", "service", "agents resolve", "agents list", "agents show", "agents attach",
    "diff", "agents status", "agents check", "skill show", "inbox status", "config list", "config get", "config path",
    "rules list", "rules test",
    "token list",
}  # fmt: skip
"""They change nothing that could be lost. `doctor --fix` makes copies again, `stats` keeps a cache, `demo` has a
store of its own that ends with it."""

SAME = {
    "admin cleanup": "agents cleanup",
    "config edit": "config set",
    "publish_event": "publish",
    "job_subscriber": "subscribe",
    "push": "token revoke",
}
"""Verbs that write the same as another verb, by the same function."""
