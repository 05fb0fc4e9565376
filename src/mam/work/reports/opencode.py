"""Reads OpenCode's `run --format json`.

A `step_finish` whose reason is not `tool-calls`, or an `error`, ends a turn. A denied tool ends the turn without
either, and with exit code 0. While the vendor does not answer, which may take hours, stdout shows nothing, so the
errors of its log (stderr) are read too.
"""

from __future__ import annotations

import re

from mam.work.reports.problems import epoch_ms, is_of_plan, problem_from_text
from mam.work.reports.report import (
    BILLING,
    DECLINED,
    LIMIT,
    LOGIN,
    AgentProblem,
    Reader,
    get_list,
    get_path,
    tool_summary,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

_REJECTED = re.compile(r"rejected permission|prevents you from using|permission denied by", re.IGNORECASE)
_ASKED = re.compile(r"permission requested: ([\w.-]+).*auto-rejecting")
_MODEL_ERROR = re.compile(r'message="stream error".* session\.id=(\S+) small=false .*error\.error="((?:[^"\\]|\\.)*)')
_NAME = re.compile(r"^AI_\w+: ")


class OpenCodeReader(Reader):
    def __init__(self) -> None:
        super().__init__()
        self._has_content = False
        """Whether the model has said or done anything in this step."""

    def read_message(self, message: Json) -> str | None:
        self.report.set_session(message.get("sessionID"))
        match message.get("type"):
            case "text":
                if get_path(message, "part", "text"):
                    self._lives()
                self.report.set_last_message(get_path(message, "part", "text"))
            case "tool_use":
                self._lives()
                return self._tool(message)
            case "step_finish":
                self._finish(message)
            case "error":
                self._error(message.get("error"))
            case "reasoning":
                self._lives()
            case "step_start":
                self._has_content = False
            case _:
                self.report.unknown_lines += 1
        return None

    def read_stderr_line(self, line: str) -> None:
        if asked := _ASKED.search(line):
            self.report.deny(asked[1])
        elif failed := _MODEL_ERROR.search(line):
            self.report.set_session(failed[1])
            self.report.problem = problem = problem_from_text(_NAME.sub("", failed[2].replace('\\"', '"')))
            plan = problem.kind == LIMIT and is_of_plan(problem.text)
            self.report.is_stuck = plan or problem.kind in (LOGIN, BILLING)
            self.report.note_error(problem.text)

    def _lives(self) -> None:
        """The model answers: earlier problems have passed."""
        self._has_content = True
        self.report.note_progress()
        self.report.problem = None
        self.report.is_stuck = False

    def _tool(self, message: Json) -> str:
        state, tool = get_path(message, "part", "state"), get_path(message, "part", "tool")
        error = get_path(state, "error")
        self.report.asked = None
        has_answer = get_path(message, "part", "callID") in self.report.answered_calls
        is_question = "question" in (tool, get_path(state, "input", "tool"))  # without that tool it is `invalid`
        if is_question and not has_answer:
            self.report.ask(get_path(next(iter(get_list(state, "input", "questions")), None), "question"))
        is_rejected = get_path(state, "status") == "error" and isinstance(error, str) and _REJECTED.search(error)
        if is_rejected and not has_answer:
            self.report.deny(tool)
        return tool_summary(tool, get_path(state, "input", "filePath"))

    def _finish(self, message: Json) -> None:
        tokens = get_path(message, "part", "tokens")
        self.report.count(
            input=get_path(tokens, "input"), cached=get_path(tokens, "cache", "read"), output=get_path(tokens, "output")
        )
        self.report.count(input=get_path(tokens, "cache", "write"))
        self.report.cost(get_path(message, "part", "cost"))
        self.report.is_over = get_path(message, "part", "reason") not in ("tool-calls", "unknown")
        if not self._has_content and not get_path(tokens, "output"):
            self.report.note_empty_step()

    def _error(self, error: object) -> None:
        self.report.is_over = True
        said, status = get_path(error, "data", "message"), get_path(error, "data", "statusCode")
        if get_path(error, "name") == "ContentFilterError":
            self.report.problem = AgentProblem(kind=DECLINED, text=str(said)[:400])
            return
        body = get_path(error, "data", "responseBody")
        found = problem_from_text(said, status)
        if found.kind != BILLING and isinstance(body, str) and "insufficient_quota" in body:
            found = found.replace(kind=BILLING, resets_at_ms=None)
        if found.kind == LIMIT and found.resets_at_ms is None and isinstance(body, str):
            stamp = re.search(r'"resets_at": ?(\d{10})\b', body)
            found = found.replace(resets_at_ms=epoch_ms(int(stamp[1])) if stamp else None)
        self.report.problem = found
