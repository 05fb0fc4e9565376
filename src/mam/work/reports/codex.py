"""Reads Codex's `exec --json` and its session file, since often no line shows that the sandbox stopped a command.

`turn.completed` or `turn.failed` ends a turn. A denied command leaves exit code 0. Codex reports no cost, and the
tokens are those of the whole conversation; for a resumed one, the session file contains the tokens of earlier turns.
"""

from __future__ import annotations

import json
import re

from mam.util.strict_json import safe_json
from mam.work.reports.problems import problem_from_text
from mam.work.reports.report import DECLINED, AgentProblem, Reader, get_list, get_path, one_line, tool_summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mam.jobs.record import Json
    from mam.work.reports.report import Report

_STOPPED = re.compile(
    r"read-only file system|operation not permitted|sandbox denied|rejected by user|rejected by configuration"
    r"|blocked by (the )?sandbox|blocked by policy",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\b\d+/\d+\b")
"""Codex counts its retries in the text."""
_EXIT = re.compile(r"(?:exited with code|exit code:?) (-?\d+)", re.IGNORECASE)


class CodexReader(Reader):
    def __init__(self) -> None:
        super().__init__()
        self._items = 0

    def read_message(self, message: Json) -> str | None:
        match message.get("type"):
            case "thread.started":
                self.report.set_session(message.get("thread_id"))
            case "item.started" | "item.updated" | "item.completed":
                return self._item(message, is_new=message["type"] == "item.started")
            case "turn.completed":
                self._completed(message)
            case "turn.failed":
                self.report.is_over = True
                self.report.problem = problem_from_text(_inner(get_path(message, "error", "message")))
            case "error":
                self.report.problem = problem = problem_from_text(_inner(message.get("message")))
                self.report.note_error(_COUNT.sub("", problem.text))
            case "turn.started":
                pass
            case _:
                self.report.unknown_lines += 1
        return None

    def _item(self, message: Json, *, is_new: bool) -> str | None:
        item = message.get("item")
        kind = get_path(item, "type")
        if kind == "error":  # a warning; nothing has failed yet
            return None
        self._items += 1
        self.report.note_progress()
        if kind == "agent_message":
            self.report.set_last_message(get_path(item, "text"))
        elif kind == "command_execution":
            output = get_path(item, "aggregated_output")
            failed = get_path(item, "status") == "failed" and isinstance(output, str)
            if self._was_refused(item) or (failed and _STOPPED.search(str(output))):
                self.report.deny_stopped("a command")
            return "runs a command" if is_new else None
        elif kind == "file_change":
            paths = [get_path(change, "path") for change in get_list(item, "changes")]
            if self._was_refused(item) or get_path(item, "status") == "failed":
                self.report.deny_stopped("an edit")
            return tool_summary("edits", paths[0]) if paths and not is_new else None
        elif kind in ("mcp_tool_call", "web_search"):
            return tool_summary(get_path(item, "tool") or kind) if is_new else None
        return None

    def _was_refused(self, item: object) -> bool:
        """Whether it was declined without a question; an answer has a line of its own."""
        return get_path(item, "status") == "declined" and get_path(item, "id") not in self.report.answered_calls

    def _completed(self, message: Json) -> None:
        report = self.report
        report.is_over = True
        report.count(**_counted(message.get("usage")))
        report.problem = None
        if report.last_message is None and not self._items:
            report.problem = AgentProblem(kind=DECLINED, text="the model ended its turn without an answer")


def read_rollout(lines: Iterable[bytes], since: str, report: Report) -> None:
    """Adds denied tools and questions from a session file, from the time `since` on (in the file's format), and
    subtracts the tokens of turns before the last one."""
    taken: dict[str, object] = {}
    earlier: dict[str, object] = {}
    for line in lines:
        try:
            message = safe_json(line)
        except ValueError:
            continue
        match get_path(message, "payload", "type"):
            case "token_count":
                taken = _counted(get_path(message, "payload", "info", "total_token_usage")) or taken
            case "task_started":  # without comparing times: the clock of `since` may be another host's
                earlier = taken
        if not str(get_path(message, "timestamp")) >= since:
            continue
        kind, output = get_path(message, "payload", "type"), get_path(message, "payload", "output")
        if kind in ("function_call_output", "custom_tool_call_output"):
            if get_path(message, "payload", "call_id") in report.answered_calls:
                report.forget_stopped()
            elif _was_stopped(output):
                report.deny_stopped("a command" if kind == "function_call_output" else "an edit")
        elif kind in ("function_call", "custom_tool_call"):
            report.asked = None
            is_answered = get_path(message, "payload", "call_id") in report.answered_calls
            if get_path(message, "payload", "name") == "request_user_input" and not is_answered:
                report.ask(_question(get_path(message, "payload", "arguments")))
    report.discount(**earlier)


def turn_usage(lines: Iterable[bytes], names: Collection[str], report: Report) -> None:
    """Adds the tokens of the turn with these names to the report. The transcript has running totals."""
    taken: dict[str, object] = {}
    is_own = False
    for line in lines:
        if b'"token_count"' not in line and b'"task_started"' not in line:
            continue
        try:
            payload = get_path(safe_json(line), "payload")
        except ValueError:
            continue
        match get_path(payload, "type"):
            case "token_count":
                taken = _counted(get_path(payload, "info", "total_token_usage")) or taken
            case "task_started":
                if is_own:
                    break
                turn = get_path(payload, "turn_id")
                is_own = isinstance(turn, str) and turn in names
                earlier = taken
    if is_own:
        report.count(**taken)
        report.discount(**earlier)


def _counted(usage: object) -> dict[str, object]:
    """Tokens as a report counts them: cached tokens are not part of the input."""
    if not isinstance(usage, dict):
        return {}
    total, cached = get_path(usage, "input_tokens"), get_path(usage, "cached_input_tokens")
    fresh = total - cached if type(total) is int and type(cached) is int else total
    return {"input": fresh, "cached": cached, "output": get_path(usage, "output_tokens")}


def _question(arguments: object) -> object:
    try:
        given = safe_json(arguments) if isinstance(arguments, str) else None
    except ValueError:
        return None
    return get_path(next(iter(get_list(given, "questions")), None), "question")


def _was_stopped(output: object) -> bool:
    text = output if isinstance(output, str) else json.dumps(output) if output is not None else ""
    code = _EXIT.search(text)
    return (code is None or int(code[1]) != 0) and _STOPPED.search(text) is not None


def _inner(text: object) -> object:
    """The message may be a vendor's complete answer as JSON."""
    if isinstance(text, str) and text.startswith("{"):
        try:
            found = safe_json(text)
        except ValueError:
            return text
        kind, said = get_path(found, "error", "type"), get_path(found, "error", "message")
        return f"{one_line(said) or text} ({kind})" if isinstance(kind, str) else said or text
    return text
