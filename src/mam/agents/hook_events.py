"""The hooks of coding agents as log lines and events: which hook, which tool, which turn.

Prompts and tool input are private and are not copied, with two exceptions: the mark by which mam recognizes its own
prompt, and the agent's last message, which is the result of the job.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

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

_NOTICE = "<task-notification>"
"""In the prompt by which Claude Code tells itself that a background task of its turn has ended."""
_USAGE = ("input", "cached", "output", "cost")

MARK = "mam:"
"""Precedes the job and the attempt in a line that mam types."""
TEXT_LIMIT = 64 * 1024
_PATH_LIMIT = 4096


def log_line(agent: str, hook_input: Any, at_ms: int) -> Json:
    """The fields of a hook for the session's log; `event_from_hook` reads them like the hook itself."""
    line: Json = {"at_ms": at_ms, "agent": agent, "hook_event_name": safe_identifier(hook_input["hook_event_name"])}
    for name in ("tool_name", "notification_type", "source", "error", "session_id", "reason"):
        if word := safe_identifier(hook_input.get(name)):
            line[name] = word
    # Claude Code numbers prompts, Codex numbers turns. Both identify a turn.
    if turn := safe_identifier(hook_input.get("prompt_id")) or safe_identifier(hook_input.get("turn_id")):
        line["turn"] = turn
    prompt = hook_input.get("prompt")
    if mark := find_mark(prompt):
        line["mark"] = mark
    if isinstance(prompt, str) and _NOTICE in prompt:
        line["notice"] = True
    if hook_input.get("agent_id"):
        line["inside"] = True
    if hook_input.get("background_tasks") or hook_input.get("session_crons"):
        line["background"] = True
    if used := _figures(hook_input.get("usage")):
        line["usage"] = used
    path, text = hook_input.get("transcript_path"), hook_input.get("last_assistant_message")
    if isinstance(path, str) and len(path) <= _PATH_LIMIT:
        line["transcript_path"] = path
    if isinstance(text, str):
        line["text"] = text[-TEXT_LIMIT // 4 :]
    return line


def _figures(usage: object) -> str:
    """What a turn took, as a plugin reports it: numbers by name."""
    if not isinstance(usage, dict):
        return ""
    numbers = {name: usage[name] for name in _USAGE if type(usage.get(name)) in (int, float)}
    return " ".join(f"{name}={number}" for name, number in numbers.items())


def find_mark(prompt: object) -> str:
    """The last mark in a prompt, `JOB.ATTEMPT`; empty if there is none."""
    if not isinstance(prompt, str):
        return ""
    _, found, rest = prompt.rpartition(f"({MARK}")
    mark = rest.partition(")")[0] if found else ""
    return mark if len(mark) <= 2 * NAME_LIMIT and safe_identifier(mark.replace(".", "", 1)[:NAME_LIMIT]) else ""


def event_from_hook(agent: str, hook_input: Any) -> tuple[str, str, dict[str, str]] | None:
    """The event, its detail and its data; None for a hook that causes no event."""
    hook = safe_identifier(hook_input["hook_event_name"])
    tool = safe_identifier(hook_input["tool_name"]) if isinstance(hook_input.get("tool_name"), str) else ""
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
        data["kind"] = kind = safe_identifier(hook_input.get("notification_type", ""))
        return ("permission_required", f"{agent} {_WAITING[kind]}", data) if kind in _WAITING else None
    if hook == "SessionStart":
        return _session(agent, hook_input, data)
    if hook == "StopFailure":
        data["failure"] = failure = safe_identifier(hook_input.get("error", "")) or "unknown"
        return "progress", f"{agent} ended its turn with {failure}", data
    if hook in _PROGRESS:
        return "progress", f"{agent} {_PROGRESS[hook].format(tool=tool or 'a tool')}", data
    return None


def _session(agent: str, hook_input: Any, data: dict[str, str]) -> tuple[str, str, dict[str, str]]:
    data["how"] = how = safe_identifier(hook_input.get("source", ""))
    # Only `startup` starts a session; the other sources continue one.
    return ("started" if how == "startup" else "progress"), f"{agent} began a session", data


def safe_identifier(text: object) -> str:
    """The text if it has the form of an identifier, otherwise an empty string: free text could be private."""
    word = text if isinstance(text, str) else ""
    plain = word.isascii() and all(letter.isalnum() or letter in _PARTS for letter in word)
    return word if plain and len(word) <= NAME_LIMIT else ""
