"""Reads OpenCode's `run --format json`."""

from __future__ import annotations

import re

from mam.conversation.items import (
    DENIED,
    DONE,
    FAILED,
    RUNNING,
    Asked,
    Began,
    Changed,
    Cost,
    Ended,
    Plan,
    Said,
    Step,
    Thought,
    Used,
)
from mam.conversation.reader import ConversationReader
from mam.conversation.tools import count_patch, describe_tool, first_question, line_count, patch_lines
from mam.work.reports.report import get_list, get_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mam.conversation.items import Item
    from mam.jobs.record import Json

_REJECTED = re.compile(r"rejected permission|prevents you from using|permission denied by", re.IGNORECASE)
_STATES = {"completed": DONE, "error": FAILED}
_STEPS = {"in_progress": "active", "completed": "done", "cancelled": "done"}


class OpenCodeConversation(ConversationReader):
    def __init__(self) -> None:
        super().__init__()
        self._session: object = None
        self._cost = Cost()
        """Of the steps of this turn so far."""

    def read_message(self, message: Json) -> Iterable[Item] | None:
        part = message.get("part")
        match message.get("type"):
            case "step_start":
                return self._begin(message.get("sessionID"))
            case "text":
                return [Said(text=str(get_path(part, "text") or ""))]
            case "reasoning":
                return [Thought(text=str(get_path(part, "text") or ""))]
            case "tool_use":
                return _tool(part, self.asked_calls)
            case "step_finish":
                return self._finish(part)
            case "error":
                error = message.get("error")
                text = get_path(error, "data", "message") or get_path(error, "name") or "no reason was given"
                return [*self._end_cost(), Ended(ok=False, text=str(text))]
        return None

    def _begin(self, session: object) -> list[Item]:
        is_new = isinstance(session, str) and session != self._session
        self._session = session
        return [Began(session=str(session))] if is_new else []

    def _finish(self, part: object) -> list[Item]:
        counts = {"input": ("input",), "cached": ("cache", "read"), "output": ("output",)}
        for name, path in counts.items():
            count = get_path(part, "tokens", *path)
            if type(count) is int:
                self._cost = self._cost.replace(**{name: (getattr(self._cost, name) or 0) + count})
        usd = get_path(part, "cost")
        if isinstance(usd, int | float):
            self._cost = self._cost.replace(usd=round((self._cost.usd or 0.0) + usd, 9))
        reason = get_path(part, "reason")
        if reason == "tool-calls":
            return []
        ok = reason == "stop"
        return [*self._end_cost(), Ended(ok=ok, text="" if ok else f"the turn ended: {reason}")]

    def _end_cost(self) -> list[Item]:
        cost, self._cost = self._cost, Cost()
        return [] if cost == Cost() else [cost]


def _tool(part: object, asked_calls: set[str]) -> Iterator[Item]:
    state, tool = get_path(part, "state"), str(get_path(part, "tool"))
    given, status, error = get_path(state, "input"), get_path(state, "status"), get_path(state, "error")
    if tool == "todowrite" and status != "error":
        yield Plan(steps=tuple(_steps(given)))
        return
    if tool == "question" and get_path(part, "callID") not in asked_calls:
        question, choices = first_question(given)
        yield Asked(question=question, choices=choices)
    verb, target = describe_tool(tool, given)
    rejected = isinstance(error, str) and _REJECTED.search(error) is not None
    code, output = get_path(state, "metadata", "exit"), get_path(state, "output")
    used = Used(
        id=str(get_path(part, "callID")), tool=tool, verb=verb, target=target,
        state=DENIED if rejected else _STATES.get(str(status), RUNNING),
        output=str(error or "") if status == "error" else output if isinstance(output, str) else "",
        exit_code=code if type(code) is int else None, seconds=_seconds(get_path(state, "time")),
    )  # fmt: skip
    if used.state == DONE and verb in ("edit", "write"):
        yield _change(used, state, given)
        return
    yield used.replace(state=FAILED) if used.state == DONE and used.exit_code else used


def _change(used: Used, state: object, given: object) -> Changed:
    metadata = get_path(state, "metadata")
    is_new = get_path(metadata, "exists") is False
    lines = patch_lines(get_path(metadata, "diff"))
    added, removed = count_patch(lines) if lines else (None, None)
    if is_new:
        added, removed = line_count(get_path(given, "content")), 0
    return Changed(
        id=used.id, path=used.target, action="create" if is_new else "edit", added=added, removed=removed,
        patch="\n".join(map(str, lines)),
    )  # fmt: skip


def _steps(given: object) -> Iterator[Step]:
    for todo in get_list(given, "todos"):
        state = _STEPS.get(str(get_path(todo, "status")), "pending")
        yield Step(text=str(get_path(todo, "content") or ""), state=state)


def _seconds(time: object) -> float | None:
    start, end = get_path(time, "start"), get_path(time, "end")
    return (end - start) / 1000 if type(start) is int and type(end) is int and end >= start else None
