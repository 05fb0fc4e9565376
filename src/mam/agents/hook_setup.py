"""Configure an agent to call `mam hook` in one session, without changing the user's files.

Claude Code takes the settings of one session from a file (`--settings`). Codex takes single settings (`-c`) and runs
only trusted hooks; mam trusts exactly its own hooks by their hashes. OpenCode takes an additional plugin from its
environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys

from mam.agent_table import CODING_AGENTS, load
from mam.errors import BadInput
from mam.stores.private_files import replace_bytes, replace_json_file
from mam.util.strict_json import safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Launched = tuple[list[str], dict[str, str]]
    """The command line, and the variables that its environment gets in addition."""

AGENT_OF_PROGRAM = {kind.program: name for name, kind in CODING_AGENTS.items()}
"""The agent of a program, if the user does not name one."""
HOOKED = tuple(name for name, kind in CODING_AGENTS.items() if kind.hooks)

BRIEFS = "briefs"
"""The directory below a session's root that its agent may read without asking."""

CLAUDE_EVENTS = (
    "SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse",
    "PostToolUseFailure", "Notification", "Elicitation", "SubagentStop", "Stop", "StopFailure",
)  # fmt: skip
CODEX_EVENTS = (
    "SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "SubagentStop",
    "Stop",
)  # fmt: skip
SECONDS, AT_THE_END_SECONDS = 10, 3
"""How long an agent waits for a hook. mam gives up sooner, but a start can take seconds on a busy machine. Codex allows
no more at the end of a session."""

ASKING_SECONDS = 7 * 86400
"""How long Claude Code waits for the hook that asks a person. Its timer holds less than 25 days."""
_ASKING_HOOK = (sys.executable, "-P", "-m", "mam.work.drivers.claude_hook")

_REPORTS = ("publish", "heartbeat", "complete", "fail", "ask")
"""The verbs that an agent may run without asking: reports about its own job."""
_SETTINGS_LIMIT = 1 << 20
_OPENCODE_SETTINGS = "OPENCODE_CONFIG_CONTENT"


def add_hooks(tool: str, command: Sequence[str], root: str, workdir: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command to run and the variables to add to its environment. Unchanged for an agent without known hooks.
    Writes below `root` only."""
    if tool not in HOOKED:
        return tuple(command), {}
    argv, env = load(CODING_AGENTS[tool].hooks)(list(command), root, workdir)
    return tuple(argv), env


def mam_argv() -> list[str]:
    """The command of this mam: the agent's PATH may have none or another one."""
    own = os.path.abspath(sys.argv[0])
    if os.path.basename(own) == "mam" and os.access(own, os.X_OK):
        return [own]
    return [sys.executable, "-P", "-m", "mam"]


def mam_command() -> str:
    """The same as one shell word sequence."""
    return shlex.join(mam_argv())


def add_claude_hooks(command: list[str], root: str, workdir: str) -> Launched:
    program, *words = command
    own, words = _own_settings(words, workdir)
    path = os.path.join(root, "settings.json")
    replace_json_file(path, _merged(own, _claude_settings(root)))
    return [program, "--settings", path, *words], {}


def _claude_settings(root: str) -> dict[str, Any]:
    hook = {"type": "command", "command": f"{mam_command()} hook claude-code", "timeout": SECONDS}
    hooks: dict[str, list[dict[str, Any]]] = {event: [{"hooks": [hook]}] for event in CLAUDE_EVENTS}
    asking = {"type": "command", "command": shlex.join(_ASKING_HOOK), "timeout": ASKING_SECONDS}
    hooks["PermissionRequest"].append({"hooks": [asking]})
    hooks["PreToolUse"].append({"matcher": "AskUserQuestion", "hooks": [asking]})
    return {
        "hooks": hooks,
        "permissions": {
            "additionalDirectories": [os.path.join(root, BRIEFS)],
            "allow": [f"Bash(mam {verb}:*)" for verb in _REPORTS],
        },
    }


def _own_settings(words: list[str], workdir: str) -> tuple[dict[str, Any], list[str]]:
    """The user's own `--settings` and the command without them, because Claude Code accepts the option once."""
    for at, word in enumerate(words):
        option, equals, value = word.partition("=")
        if word == "--":
            break
        if option == "--settings" and (equals or at + 1 < len(words)):
            rest = words[:at] + words[at + (1 if equals else 2) :]
            return _read_settings(value if equals else words[at + 1], workdir), rest
    return {}, words


def _read_settings(given: str, workdir: str) -> dict[str, Any]:
    text = given
    if not given.lstrip().startswith("{"):
        try:
            with open(os.path.join(workdir, os.path.expanduser(given)), encoding="utf-8") as file:
                text = file.read(_SETTINGS_LIMIT)
        except (OSError, ValueError) as error:
            raise BadInput(why=f"--settings {given[:200]}: {getattr(error, 'strerror', None) or error}") from None
    try:
        found = safe_json(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadInput(why=f"--settings {given[:200]} is not a JSON object, so mam's hooks cannot be added; --no-hooks")
    return found


def _merged(own: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    """Merge tables and join lists; for a single value the user's own takes precedence."""
    merged = dict(own)
    for name, value in added.items():
        held = own.get(name)
        if isinstance(held, dict) and isinstance(value, dict):
            merged[name] = _merged(held, value)
        elif isinstance(held, list) and isinstance(value, list):
            merged[name] = [*held, *value]
        elif name not in own:
            merged[name] = value
    return merged


def add_codex_hooks(command: list[str], _root: str, _workdir: str) -> Launched:
    return [command[0], *_codex_settings(), *command[1:]], {}


def _codex_settings() -> list[str]:
    command = f"{mam_command()} hook codex"
    words, trusted = ["-c", "features.hooks=true"], []
    for event in CODEX_EVENTS:
        label, trusted_hash = codex_trust(event, command)
        words += ["-c", f'hooks.{event}=[{{hooks=[{{type="command",command={_toml(command)},timeout={SECONDS}}}]}}]']
        trusted.append(f'"/<session-flags>/config.toml:{label}:0:0"={{trusted_hash="{trusted_hash}"}}')
    return [*words, "-c", f"hooks.state={{{','.join(trusted)}}}"]


def codex_trust(event: str, command: str) -> tuple[str, str]:
    """How Codex names an event, and the hash that it computes of a hook: its JSON with sorted names, without blanks."""
    seconds = AT_THE_END_SECONDS if event == "SessionEnd" else SECONDS
    handler = {"async": False, "command": command, "timeout": seconds, "type": "command"}
    label = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in event).lstrip("_")
    identity = json.dumps(
        {"event_name": label, "hooks": [handler]}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return label, f"sha256:{hashlib.sha256(identity.encode()).hexdigest()}"


def add_opencode_hooks(command: list[str], root: str, _workdir: str) -> Launched:
    """OpenCode adds the content of this variable, including its list of plugins, to the user's own settings."""
    from urllib.parse import quote

    if os.environ.get(_OPENCODE_SETTINGS):
        raise BadInput(why=f"{_OPENCODE_SETTINGS} is set, so mam's plugin cannot be added; unset it, or --no-hooks")
    with open(os.path.join(os.path.dirname(__file__), "opencode_plugin.js"), encoding="utf-8") as file:
        plugin = file.read()
    given = {"command": mam_argv(), "briefs": os.path.join(root, BRIEFS), "verbs": _REPORTS}
    head = "".join(f"const {name} = {json.dumps(value)}\n" for name, value in given.items())
    path = os.path.join(root, "opencode.js")
    replace_bytes(path, (head + plugin).encode())
    return command, {_OPENCODE_SETTINGS: json.dumps({"plugin": [f"file://{quote(path)}"]})}


def _toml(text: str) -> str:
    """A basic string of TOML. JSON strings have the same form for the characters that paths contain."""
    return json.dumps(text, ensure_ascii=False)
