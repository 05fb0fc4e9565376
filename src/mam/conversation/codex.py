"""Reads Codex's `exec --json`."""

from __future__ import annotations

from mam.conversation.items import (
    DENIED,
    DONE,
    ERROR,
    FAILED,
    RUNNING,
    WARNING,
    Began,
    Changed,
    Cost,
    Ended,
    Notice,
    Plan,
    Said,
    Step,
    Thought,
    Used,
)
from mam.conversation.reader import ConversationReader
from mam.conversation.tools import describe_tool, text_of, unwrap_shell
from mam.util.strict_json import safe_json
from mam.work.reports.report import get_list, get_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mam.conversation.items import Item
    from mam.jobs.record import Json

_STATES = {"in_progress": RUNNING, "completed": DONE, "failed": FAILED, "declined": DENIED}
_ACTIONS = {"add": "create", "delete": "delete", "update": "edit"}


class CodexConversation(ConversationReader):
    def read_message(self, message: Json) -> Iterable[Item] | None:
        match message.get("type"):
            case "thread.started":
                session = message.get("thread_id")
                return [Began(session=session if isinstance(session, str) else None)]
            case "turn.started":
                return []
            case "item.started" | "item.updated" | "item.completed":
                return _item(message, is_over=message["type"] == "item.completed")
            case "turn.completed":
                return [_cost(message.get("usage")), Ended(ok=True)]
            case "turn.failed":
                return [Ended(ok=False, text=_plain(get_path(message, "error", "message")))]
            case "error":
                return [Notice(text=_plain(message.get("message")), level=ERROR)]
        return None


def _item(message: Json, *, is_over: bool) -> Iterable[Item] | None:
    item = message.get("item")
    text = str(get_path(item, "text") or "")
    match get_path(item, "type"):
        case "agent_message":
            return [Said(text=text)] if is_over else []
        case "reasoning":
            return [Thought(text=text)] if is_over else []
        case "command_execution":
            code = get_path(item, "exit_code")
            command = unwrap_shell(get_path(item, "command"))
            return [_used(item, "shell", "ran", command, get_path(item, "aggregated_output"), code)]
        case "file_change":
            return _changes(item, is_over=is_over)
        case "mcp_tool_call":
            name = ".".join(str(part) for part in (get_path(item, "server"), get_path(item, "tool")) if part)
            verb, target = describe_tool(name, get_path(item, "arguments"))
            output = get_path(item, "error", "message") or text_of(get_path(item, "result", "content"))
            return [_used(item, name, verb, target, output)]
        case "web_search":
            state = {"status": "completed" if is_over else "in_progress"}
            return [_used({**state, **_dict(item)}, "web_search", "search", str(get_path(item, "query") or ""))]
        case "todo_list":
            return [Plan(steps=tuple(_steps(item)))]
        case "error":
            return [Notice(text=_plain(get_path(item, "message")), level=WARNING)]
    return None


def _used(item: object, tool: str, verb: str, target: str, output: object = "", code: object = None) -> Used:
    return Used(
        id=str(get_path(item, "id")), tool=tool, verb=verb, target=target,
        state=_STATES.get(str(get_path(item, "status")), RUNNING),
        output=output if isinstance(output, str) else "", exit_code=code if type(code) is int else None,
    )  # fmt: skip


def _changes(item: object, *, is_over: bool) -> Iterator[Item]:
    """Codex names the files and counts no lines."""
    status, item_id = str(get_path(item, "status")), str(get_path(item, "id"))
    for change in get_list(item, "changes"):
        path = str(get_path(change, "path"))
        if is_over and status == "completed":
            action = _ACTIONS.get(str(get_path(change, "kind")), "edit")
            yield Changed(id=item_id, path=path, action=action)
        else:
            yield _used(item, "apply_patch", "edit", path)


def _steps(item: object) -> Iterator[Step]:
    """Codex marks no step as active: it is the first one that is not done."""
    active = "active"
    for step in get_list(item, "items"):
        is_done = get_path(step, "completed") is True
        yield Step(text=str(get_path(step, "text") or ""), state="done" if is_done else active)
        if not is_done:
            active = "pending"


def _cost(usage: object) -> Cost:
    total, cached, output = (get_path(usage, f"{name}_tokens") for name in ("input", "cached_input", "output"))
    fresh = total - cached if type(total) is int and type(cached) is int else total
    counts = {"input": fresh, "cached": cached, "output": output}
    return Cost(**{name: count for name, count in counts.items() if type(count) is int})


def _plain(text: object) -> str:
    """The message in a vendor's answer, which Codex may print as JSON."""
    if isinstance(text, str) and text.startswith("{"):
        try:
            text = get_path(safe_json(text), "error", "message") or text
        except ValueError:
            pass
    return str(text or "no reason was given")


def _dict(item: object) -> Json:
    return item if isinstance(item, dict) else {}
