"""Codex's `exec --json`, and what it leaves out: a command that its sandbox stopped is often on no line at all, so the
session's own file is looked at as well.

`turn.completed` or `turn.failed` ends a turn. A refused command leaves exit code 0. There is no cost, and the tokens
are those of the whole conversation: of one that was resumed, the session's file tells what earlier turns had taken.
"""

from __future__ import annotations

import json
import re

from mam.util.strict_json import safe_json
from mam.work.reports.report import DECLINED, Reader, Trouble, part, parts, step, words
from mam.work.reports.troubles import trouble_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.record import Json
    from mam.work.reports.report import Report

_STOPPED = re.compile(
    r"read-only file system|operation not permitted|sandbox denied|rejected by user|rejected by configuration"
    r"|blocked by (the )?sandbox|blocked by policy",
    re.IGNORECASE,
)
_EXIT = re.compile(r"(?:exited with code|exit code:?) (-?\d+)", re.IGNORECASE)


class CodexReader(Reader):
    def __init__(self) -> None:
        super().__init__()
        self._items = 0

    def take(self, message: Json) -> str | None:
        match message.get("type"):
            case "thread.started":
                self.report.name_session(message.get("thread_id"))
            case "item.started" | "item.updated" | "item.completed":
                return self._item(message, is_new=message["type"] == "item.started")
            case "turn.completed":
                self._completed(message)
            case "turn.failed":
                self.report.is_over = True
                self.report.trouble = trouble_of(_inner(part(message, "error", "message")))
            case "error":
                self.report.trouble = trouble_of(_inner(message.get("message")))
            case "turn.started":
                pass
            case _:
                self.report.strange += 1
        return None

    def _item(self, message: Json, *, is_new: bool) -> str | None:
        item = message.get("item")
        kind = part(item, "type")
        if kind == "error":  # a warning of its own: nothing has failed yet
            return None
        self._items += 1
        self.report.has_answered = True
        if kind == "agent_message":
            self.report.say(part(item, "text"))
        elif kind == "command_execution":
            output = part(item, "aggregated_output")
            failed = part(item, "status") == "failed" and isinstance(output, str)
            if part(item, "status") == "declined" or (failed and _STOPPED.search(str(output))):
                self.report.deny("a command")
            return "runs a command" if is_new else None
        elif kind == "file_change":
            paths = [part(change, "path") for change in parts(item, "changes")]
            if part(item, "status") in ("declined", "failed"):
                self.report.deny("an edit")
            return step("edits", paths[0]) if paths and not is_new else None
        elif kind in ("mcp_tool_call", "web_search"):
            return step(part(item, "tool") or kind) if is_new else None
        return None

    def _completed(self, message: Json) -> None:
        report = self.report
        report.is_over = True
        report.count(**_counted(message.get("usage")))
        report.trouble = None
        if report.last_words is None and not self._items:
            report.trouble = Trouble(kind=DECLINED, words="the model ended its turn without an answer")


def look_through(lines: Iterable[bytes], since: str, report: Report) -> None:
    """What a session's file tells of refused tools and of questions, from this time on (as the file writes times), and
    of tokens that turns before its last one took."""
    taken: dict[str, object] = {}
    earlier: dict[str, object] = {}
    for line in lines:
        try:
            message = safe_json(line)
        except ValueError:
            continue
        match part(message, "payload", "type"):
            case "token_count":
                taken = _counted(part(message, "payload", "info", "total_token_usage")) or taken
            case "task_started":  # and no time: the clock of `since` may be another host's
                earlier = taken
        if not str(part(message, "timestamp")) >= since:
            continue
        kind, output = part(message, "payload", "type"), part(message, "payload", "output")
        if kind in ("function_call_output", "custom_tool_call_output") and _was_stopped(output):
            report.deny("a command" if kind == "function_call_output" else "an edit")
        elif kind in ("function_call", "custom_tool_call"):
            report.asked = None
            if part(message, "payload", "name") == "request_user_input":
                report.ask(_question(part(message, "payload", "arguments")))
    report.discount(**earlier)


def _counted(usage: object) -> dict[str, object]:
    """Tokens as a report counts them: what was cached is beside the input, and not in it."""
    if not isinstance(usage, dict):
        return {}
    total, cached = part(usage, "input_tokens"), part(usage, "cached_input_tokens")
    fresh = total - cached if type(total) is int and type(cached) is int else total
    return {"input": fresh, "cached": cached, "output": part(usage, "output_tokens")}


def _question(arguments: object) -> object:
    try:
        given = safe_json(arguments) if isinstance(arguments, str) else None
    except ValueError:
        return None
    return part(next(iter(parts(given, "questions")), None), "question")


def _was_stopped(output: object) -> bool:
    text = output if isinstance(output, str) else json.dumps(output) if output is not None else ""
    code = _EXIT.search(text)
    return (code is None or int(code[1]) != 0) and _STOPPED.search(text) is not None


def _inner(text: object) -> object:
    """A vendor's whole answer may stand in the place of a sentence."""
    if isinstance(text, str) and text.startswith("{"):
        try:
            found = safe_json(text)
        except ValueError:
            return text
        kind, said = part(found, "error", "type"), part(found, "error", "message")
        return f"{words(said) or text} ({kind})" if isinstance(kind, str) else said or text
    return text
