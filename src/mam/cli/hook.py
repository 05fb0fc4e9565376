"""Tell an agent's own hooks as events of its job. For the agent's settings, not for people.

Reads the JSON that Claude Code or Codex gives to a hook, prints nothing, always exits 0, and does nothing outside of a
job (MAM_JOB_ID). What the agent was asked, read or wrote is not passed on: only which hook it was, and of which tool.

  "hooks": {"PermissionRequest": [{"hooks": [{"type": "command", "command": "mam hook claude-code"}]}]}
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.cli.parser import Options, Parser

SECONDS = 2.0
"""The agent waits for its hooks, and some of them have to be over in 1.5 seconds in any case."""

INPUT_LIMIT = 4 * 1024 * 1024
NAME_LIMIT = 64
_PARTS = "_-.:"

_ASKS = {"AskUserQuestion": "asks a question", "ExitPlanMode": "asks for its plan"}
_PROGRESS = {
    "UserPromptSubmit": "got a prompt",
    "PostToolUse": "used {tool}",
    "PostToolUseFailure": "{tool} failed",
    "SubagentStart": "started a subagent",
    "SubagentStop": "a subagent ended",
    "PreCompact": "compacts its context",
    "PostCompact": "compacted its context",
    "Stop": "ended its turn",
    "SessionEnd": "ended its session",
    "TaskCompleted": "ended a task",
}
_WAITING = {
    "permission_prompt": "needs permission",
    "idle_prompt": "waits for input",
    "agent_needs_input": "waits for input",
    "elicitation_dialog": "asks for input",
    "elicitation_url_dialog": "asks for input",
    "ToolPermission": "needs permission",
}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="AGENT", help="who it is: claude-code, codex, …")


def run(options: Options) -> int:
    """Never anything but 0: an agent must not stumble over what only watches it."""
    return run_words([] if options.word is None else [options.word])


def run_words(words: list[str]) -> int:
    """The same before anything was parsed, since a wrong word is no reason to fail either."""
    try:
        _give_up_in_time()
        _be_silent()
        named, store, directory = _read(words)
        _tell(_name(named) or "agent", store, directory)
    except BaseException:  # noqa: S110 - silence is the whole point
        pass
    return 0


def _give_up_in_time() -> None:
    import time
    from _thread import start_new_thread

    def wait() -> None:
        time.sleep(SECONDS)
        os._exit(0)

    start_new_thread(wait, ())


def _be_silent() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _read(words: list[str]) -> tuple[str, str | None, str | None]:
    """The agent, and the store if one was named; what else there is does not matter."""
    named, places = "", dict[str, str]()
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in ("--store", "--registry-dir"):
            places[option] = value if equals else next(rest, "")
        elif not word.startswith("-"):
            named = named or word
    return named, places.get("--store"), places.get("--registry-dir")


def _tell(agent: str, store: str | None, directory: str | None) -> None:
    text = _input()
    job = os.environ.get("MAM_JOB_ID")
    if not job:
        return
    from mam.door import _decoded

    told = event_for(agent, _decoded(text.decode()))
    if told is None:
        return
    held = os.environ.get("MAM_ATTEMPT", "")
    event, detail, data = told
    said = {"event": event, "detail": detail, "data": data, "attempt": int(held) if held else None}
    if os.environ.get("MAM_SOCKET") and store is None and directory is None and _told_at_door(job, said):
        return
    _store(job, said, store, directory)


def _input() -> bytes:
    """All of it also when it is not used: the agent may still be writing."""
    parts: list[bytes] = []
    while len(parts) * 65536 <= INPUT_LIMIT and (part := os.read(0, 65536)):
        parts.append(part)
    return b"".join(parts)


def event_for(agent: str, given: Any) -> tuple[str, str, dict[str, str]] | None:
    """The event, its detail and its data; None for what is nobody's news."""
    hook = _name(given["hook_event_name"])
    tool = _name(given["tool_name"]) if isinstance(given.get("tool_name"), str) else ""
    data = {"source": f"{agent} hook", "hook": hook}
    if tool:
        data["tool"] = tool
    if hook == "PermissionRequest":
        return "permission_required", f"{agent} needs permission for {tool or 'a tool'}", data
    if hook == "PreToolUse":
        asks = _ASKS.get(tool)
        return ("permission_required", f"{agent} {asks}", data) if asks else ("progress", f"{agent} uses {tool}", data)
    if hook == "Elicitation":
        return "permission_required", f"{agent} asks for input", data
    if hook == "Notification":
        data["kind"] = kind = _name(given.get("notification_type", ""))
        return ("permission_required", f"{agent} {_WAITING[kind]}", data) if kind in _WAITING else None
    if hook == "SessionStart":
        return _session(agent, given, data)
    if hook == "StopFailure":
        data["failure"] = failure = _name(given.get("error", "")) or "unknown"
        return "progress", f"{agent} ended its turn with {failure}", data
    if hook in _PROGRESS:
        return "progress", f"{agent} {_PROGRESS[hook].format(tool=tool or 'a tool')}", data
    return None


def _session(agent: str, given: Any, data: dict[str, str]) -> tuple[str, str, dict[str, str]]:
    data["how"] = how = _name(given.get("source", ""))
    # Only the first one is a beginning; the others go on with what had begun.
    return ("started" if how == "startup" else "progress"), f"{agent} began a session", data


def _name(text: object) -> str:
    """A word of an identifier's form; anything else could be somebody's text."""
    word = text if isinstance(text, str) else ""
    plain = word.isascii() and all(letter.isalnum() or letter in _PARTS for letter in word)
    return word if plain and len(word) <= NAME_LIMIT else ""


def _told_at_door(job: str, said: dict[str, Any]) -> bool:
    """Whether the worker was there. If it is gone, the store may still take the event."""
    from mam.door import DoorRegistry
    from mam.errors import StoreUnavailable

    try:
        door = DoorRegistry(os.environ["MAM_SOCKET"], _nowhere)
    except StoreUnavailable:
        return False
    door.publish(job, **said)
    return True


def _nowhere() -> Any:
    raise LookupError


def _store(job: str, said: dict[str, Any], store: str | None, directory: str | None) -> None:
    from types import SimpleNamespace

    from mam.cli.delivering import deliver
    from mam.config import load_config
    from mam.workspace import open_registry

    registry = open_registry(store, directory, load_config())
    stored = registry.publish(job, **said)
    deliver(SimpleNamespace(store=store, registry_dir=directory, insecure_broker=False), registry, stored)
