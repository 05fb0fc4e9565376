"""Reads Claude Code's `--output-format stream-json`."""

from __future__ import annotations

import re

from mam.conversation.items import (
    AGENT,
    DENIED,
    DONE,
    ERROR,
    FAILED,
    INFO,
    SUBAGENT,
    USER,
    WARNING,
    Asked,
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
from mam.conversation.tools import count_patch, describe_tool, first_question, line_count, text_of
from mam.util.clock import parse_time
from mam.work.reports.report import get_list, get_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.conversation.items import Item
    from mam.jobs.record import Json

_EXIT = re.compile(r"Exit code (\d{1,3})\n?")
OPEN_TOOLS = 200
"""Tools without a result that the reader remembers."""
_STATES = {"pending": "pending", "in_progress": "active", "completed": "done"}
_SILENT = ("hook_started", "hook_progress", "permission_denied", "session_state_changed", "status", "files_persisted")
"""Lines of type `system` that repeat what another line says."""


class ClaudeCodeConversation(ConversationReader):
    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, tuple[Used, int | None]] = {}
        """Tools without a result, and when they started."""
        self._last_said = ""

    def read_message(self, message: Json) -> Iterator[Item] | None:
        match message.get("type"):
            case "system":
                return self._system(message)
            case "assistant":
                return self._assistant(message)
            case "user":
                return self._user(message)
            case "result":
                return self._result(message)
            case "rate_limit_event":
                return _rate_limit(message)
            case "stream_event" | "tool_progress" | "keep_alive":
                return iter(())  # parts of what follows
        return None

    def _system(self, message: Json) -> Iterator[Item] | None:
        text = next((found for name in ("content", "message", "summary", "description")
                     if isinstance(found := message.get(name), str) and found.strip()), None)  # fmt: skip
        match message.get("subtype"):
            case "init":
                version = message.get("claude_code_version")
                session, model = message.get("session_id"), message.get("model")
                return iter([Began(**_texts(session=session, version=version, model=model))])
            case "api_retry":
                return iter([Notice(text=_retry(message), level=WARNING)])
            case "compact_boundary":
                return iter([Notice(text="the conversation was compacted")])
            case "model_refusal_no_fallback" if text is None:
                return iter(())  # an error line follows
            case "hook_response":
                failed = message.get("exit_code") not in (0, None)
                said = f"the hook {message.get('hook_name')} failed: {message.get('stderr') or message.get('output')}"
                return iter([Notice(text=said, level=WARNING)] if failed else [])
            case subtype if subtype in _SILENT:
                return iter(())
        return None if text is None else iter([Notice(text=text, level=INFO)])

    def _assistant(self, message: Json) -> Iterator[Item]:
        by = AGENT if message.get("parent_tool_use_id") is None else SUBAGENT
        is_error = message.get("is_api_error_message") is True
        for block in get_list(message, "message", "content"):
            text = get_path(block, "text")
            match get_path(block, "type"):
                case "text" if is_error:
                    self._last_said = str(text)
                    yield Notice(text=str(text), level=ERROR)
                case "text":
                    self._last_said = str(text)
                    yield Said(text=str(text), by=by)
                case "thinking":
                    yield Thought(text=str(get_path(block, "thinking") or ""))
                case "redacted_thinking":
                    yield Thought(text="")
                case "tool_use":
                    yield from self._tool(block, message.get("timestamp"))
                case other:
                    yield Notice(text=f"a block of the kind {other}")

    def _tool(self, block: object, time: object) -> Iterator[Item]:
        name, given, tool_id = get_path(block, "name"), get_path(block, "input"), str(get_path(block, "id"))
        if name == "TodoWrite":
            yield _plan(given)
            return
        if name == "AskUserQuestion":
            question, choices = first_question(given)
            self.asked_calls.add(tool_id)
            yield Asked(question=question, choices=choices)
        elif name == "ExitPlanMode" and isinstance(plan := get_path(given, "plan"), str):
            yield Said(text=plan)
        verb, target = describe_tool(name, given)
        used = Used(id=tool_id, tool=str(name), verb=verb, target=target)
        self._open[tool_id] = (used, _milliseconds(time))
        while len(self._open) > OPEN_TOOLS:
            del self._open[next(iter(self._open))]
        yield used

    def _user(self, message: Json) -> Iterator[Item]:
        content = get_path(message, "message", "content")
        if isinstance(content, str):
            yield Said(text=content, by=USER)
            return
        for block in get_list(message, "message", "content"):
            if get_path(block, "type") == "tool_result":
                yield from self._tool_result(message, block)
            elif get_path(block, "type") == "text":
                text = str(get_path(block, "text"))
                is_own = message.get("isSynthetic") is True
                yield Notice(text=text) if is_own else Said(text=text, by=USER)

    def _tool_result(self, message: Json, block: object) -> Iterator[Item]:
        tool_id = str(get_path(block, "tool_use_id"))
        used, began = self._open.pop(tool_id, (None, None))
        if used is None:
            if get_path(block, "is_error") is not True:
                return  # the result of a plan
            used = Used(id=tool_id, tool="?", verb="tool")
        output, details = text_of(get_path(block, "content")), message.get("tool_use_result")
        if get_path(block, "is_error") is True:
            meta = next((one for one in get_list(message, "tool_result_meta") if get_path(one, "id") == tool_id), None)
            denied = get_path(meta, "permission_decision", "decision") == "reject"
            state = DENIED if denied else FAILED
        else:
            state = DONE
            if used.verb in ("edit", "write"):
                yield _change(used, details)
                return
        code = _EXIT.match(output) if used.verb == "ran" and state == FAILED else None
        if code is not None:
            used, output = used.replace(exit_code=int(code[1])), output[code.end() :]
        ended = _milliseconds(message.get("timestamp"))
        seconds = (ended - began) / 1000 if ended is not None and began is not None and ended >= began else None
        yield used.replace(state=state, output=output, seconds=seconds)

    def _result(self, message: Json) -> Iterator[Item]:
        cost = _cost(message)
        if cost is not None:
            yield cost
        ok = message.get("is_error") is not True and message.get("subtype") == "success"
        text = message.get("result") or "; ".join(map(str, get_list(message, "errors"))) or message.get("subtype")
        if ok and isinstance(message.get("result"), str) and message["result"].strip() != self._last_said.strip():
            yield Said(text=message["result"])
        yield Ended(ok=ok, text="" if ok else str(text))


def _cost(message: Json) -> Cost | None:
    """`total_cost_usd` covers the whole conversation; a resumed one reports the part of this turn beside it. Zeros are
    unknown: Claude Code prints them for a turn that it did not finish."""
    usage, total = message.get("usage"), message.get("total_cost_usd")
    parts = message.get("model_usage_since_last_result")
    if isinstance(parts, dict) and parts:
        costs = [get_path(part, "costUSD") for part in parts.values()]
        total = sum(cost for cost in costs if isinstance(cost, int | float))
    names = {"input": "input_tokens", "cached": "cache_read_input_tokens", "output": "output_tokens"}
    counts = _whole(**{name: get_path(usage, field) for name, field in names.items()})
    if not any(counts.values()) and not total:
        return None
    return Cost(usd=round(float(total), 9) if isinstance(total, int | float) else None, **counts)


def _change(used: Used, details: object) -> Changed:
    hunks = get_list(details, "structuredPatch")
    lines = [line for hunk in hunks for line in get_list(hunk, "lines")]
    added, removed = count_patch(lines)
    is_new = get_path(details, "type") == "create"
    if is_new:
        added, removed = line_count(get_path(details, "content")) or 0, 0
    known = is_new or bool(hunks)
    return Changed(
        id=used.id, path=used.target, action="create" if is_new else "edit",
        added=added if known else None, removed=removed if known else None, patch="\n".join(map(str, lines)),
    )  # fmt: skip


def _plan(given: object) -> Plan:
    steps = (
        Step(text=str(get_path(todo, "content") or ""), state=_STATES.get(str(get_path(todo, "status")), "pending"))
        for todo in get_list(given, "todos")
    )
    return Plan(steps=tuple(steps))


def _rate_limit(message: Json) -> Iterator[Item]:
    status, kind = get_path(message, "rate_limit_info", "status"), get_path(message, "rate_limit_info", "rateLimitType")
    if status not in ("allowed", None):
        name = str(kind or "usage").replace("_", " ")
        yield Notice(text=f"the {name} limit: {str(status).replace('_', ' ')}", level=WARNING)


def _retry(message: Json) -> str:
    attempt, most = message.get("attempt"), message.get("max_retries")
    count = f" {attempt} of {most}" if type(attempt) is int and type(most) is int else ""
    return f"the model does not answer ({message.get('error') or 'unknown'}); retry{count}"


def _texts(**facts: object) -> dict[str, str]:
    return {name: fact for name, fact in facts.items() if isinstance(fact, str)}


def _whole(**counts: object) -> dict[str, int]:
    return {name: count for name, count in counts.items() if type(count) is int}


def _milliseconds(time: object) -> int | None:
    try:
        return parse_time(time) if isinstance(time, str) else None
    except (ValueError, OverflowError):
        return None
