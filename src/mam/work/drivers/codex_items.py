"""What `codex app-server` reports, as the lines that `codex exec --json` prints of the same. Pure."""

from __future__ import annotations

from mam.work.reports.report import get_list, get_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

_STATES = {"inProgress": "in_progress", "completed": "completed", "failed": "failed", "declined": "declined"}
_KINDS = {
    "agentMessage": "agent_message", "reasoning": "reasoning", "commandExecution": "command_execution",
    "fileChange": "file_change", "mcpToolCall": "mcp_tool_call", "webSearch": "web_search",
}  # fmt: skip
_WARNINGS = ("warning", "guardianWarning")
_COUNTS = {
    "input_tokens": "inputTokens", "cached_input_tokens": "cachedInputTokens", "output_tokens": "outputTokens",
    "reasoning_output_tokens": "reasoningOutputTokens",
}  # fmt: skip


class CodexItems:
    """Follows one thread, the conversation of the job; the threads of subagents are not shown."""

    def __init__(self) -> None:
        self.thread = ""
        self.turn = ""
        self.over: str | None = None
        """How the turn ended: completed, failed or interrupted."""
        self._items: dict[str, Json] = {}
        self._usage: Json | None = None
        self._last_error = ""

    def item(self, call: object) -> Json:
        """The item that a request is about, as it was last reported."""
        return self._items.get(str(call), {})

    def running_tool(self, server: object) -> Json:
        """The latest use of a tool of this MCP server that has not ended."""
        for item in reversed(self._items.values()):
            if (item.get("type"), item.get("server"), item.get("status")) == ("mcpToolCall", server, "inProgress"):
                return item
        return {}

    def begin(self, thread: str) -> Json:
        self.thread = thread
        return {"type": "thread.started", "thread_id": thread}

    def lines(self, message: Json) -> list[Json]:
        """The lines about one notification; most need none."""
        method, params = message.get("method"), message.get("params")
        if get_path(params, "threadId") not in (self.thread, None):
            return self._of_subagent(method, params)
        match method:
            case "item/started" | "item/completed":
                return self._item(params, is_over=method == "item/completed")
            case "turn/started":
                self.turn = str(get_path(params, "turn", "id"))
                return [{"type": "turn.started"}]
            case "turn/completed":
                return self._turn_ended(params)
            case "turn/plan/updated":
                return [_plan(params)]
            case "thread/tokenUsage/updated":
                self._usage = _usage(get_path(params, "tokenUsage", "total")) or self._usage
            case "error":
                self._last_error = _text(get_path(params, "error", "message"))
                return [{"type": "error", "message": self._last_error}]
            case str() if method in _WARNINGS:
                text = _text(get_path(params, "message"))
                return [{"type": "item.completed", "item": {"id": method, "type": "error", "message": text}}]
        return []

    def _of_subagent(self, method: object, params: object) -> list[Json]:
        """Its items are kept, because it may ask about them."""
        if method in ("item/started", "item/completed"):
            self._item(params, is_over=True)
        return []

    def _item(self, params: object, *, is_over: bool) -> list[Json]:
        item = get_path(params, "item")
        if not isinstance(item, dict):
            return []
        self._items[str(item.get("id"))] = item
        kind = _KINDS.get(str(item.get("type")))
        if kind is None:
            return []
        fields: Json = {"id": str(item.get("id")), "type": kind, **_fields(kind, item)}
        return [{"type": "item.completed" if is_over else "item.started", "item": fields}]

    def _turn_ended(self, params: object) -> list[Json]:
        status = str(get_path(params, "turn", "status"))
        self.over = status
        if status == "completed":
            return [{"type": "turn.completed", "usage": self._usage or {}}]
        text = get_path(params, "turn", "error", "message") or self._last_error or f"the turn was {status}"
        return [{"type": "turn.failed", "error": {"message": text}}]


def _fields(kind: str, item: Json) -> Json:
    status = {"status": _STATES.get(str(item.get("status")), "in_progress")}
    match kind:
        case "agent_message":
            return {"text": _text(item.get("text"))}
        case "reasoning":
            parts = get_list(item, "summary") or get_list(item, "content")
            return {"text": "\n".join(part if isinstance(part, str) else _text(part) for part in parts)}
        case "command_execution":
            output = item.get("aggregatedOutput") or ""
            return {"command": item.get("command"), "aggregated_output": output, "exit_code": item.get("exitCode"),
                    **status}  # fmt: skip
        case "file_change":
            changes = [
                {"path": get_path(one, "path"), "kind": get_path(one, "kind", "type") or get_path(one, "kind")}
                for one in get_list(item, "changes")
            ]
            return {"changes": changes, **status}
        case "mcp_tool_call":
            return {name: item.get(name) for name in ("server", "tool", "arguments", "result", "error")} | status
    return {"query": item.get("query")}


def _plan(params: object) -> Json:
    steps = [
        {"text": _text(get_path(step, "step")), "completed": get_path(step, "status") == "completed"}
        for step in get_list(params, "plan")
    ]
    return {"type": "item.updated", "item": {"id": "plan", "type": "todo_list", "items": steps}}


def _usage(total: object) -> Json | None:
    found = {name: get_path(total, own) for name, own in _COUNTS.items()}
    return found if all(type(count) is int for count in found.values()) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
