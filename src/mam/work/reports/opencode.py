"""OpenCode's `run --format json`.

A `step_finish` whose reason is not `tool-calls` ends a turn, or an `error`. A refused tool ends the turn without
either, and with exit code 0. While the vendor does not answer nothing is said on stdout, so the errors of its log
(stderr) are read too; it may wait there for hours.
"""

from __future__ import annotations

import re

from mam.work.reports.report import BILLING, DECLINED, LIMIT, LOGIN, Reader, Trouble, part, parts, step
from mam.work.reports.troubles import epoch_ms, is_of_plan, trouble_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

_REJECTED = re.compile(r"rejected permission|prevents you from using|permission denied by", re.IGNORECASE)
_ASKED = re.compile(r"permission requested: ([\w.-]+).*auto-rejecting")
_MODEL_ERROR = re.compile(r'message="stream error".* session\.id=(\S+) small=false .*error\.error="((?:[^"\\]|\\.)*)')
_NAME = re.compile(r"^AI_\w+: ")


class OpenCodeReader(Reader):
    def take(self, message: Json) -> str | None:
        self.report.name_session(message.get("sessionID"))
        match message.get("type"):
            case "text":
                self._lives()
                self.report.say(part(message, "part", "text"))
            case "tool_use":
                self._lives()
                return self._tool(message)
            case "step_finish":
                self._finish(message)
            case "error":
                self._error(message.get("error"))
            case "step_start" | "reasoning":
                self._lives()
            case _:
                self.report.strange += 1
        return None

    def take_error(self, line: str) -> None:
        if asked := _ASKED.search(line):
            self.report.deny(asked[1])
        elif failed := _MODEL_ERROR.search(line):
            self.report.name_session(failed[1])
            self.report.trouble = trouble = trouble_of(_NAME.sub("", failed[2].replace('\\"', '"')))
            plan = trouble.kind == LIMIT and is_of_plan(trouble.words)
            self.report.is_hopeless = plan or trouble.kind in (LOGIN, BILLING)

    def _lives(self) -> None:
        """The model answers: what went wrong before has passed."""
        self.report.has_answered = True
        self.report.trouble = None
        self.report.is_hopeless = False

    def _tool(self, message: Json) -> str:
        state, tool = part(message, "part", "state"), part(message, "part", "tool")
        error = part(state, "error")
        self.report.asked = None
        if "question" in (tool, part(state, "input", "tool")):  # which is not offered here, and then called invalid
            self.report.ask(part(next(iter(parts(state, "input", "questions")), None), "question"))
        if part(state, "status") == "error" and isinstance(error, str) and _REJECTED.search(error):
            self.report.deny(tool)
        return step(tool, part(state, "input", "filePath"))

    def _finish(self, message: Json) -> None:
        tokens = part(message, "part", "tokens")
        self.report.count(
            input=part(tokens, "input"), cached=part(tokens, "cache", "read"), output=part(tokens, "output")
        )
        self.report.cost(part(message, "part", "cost"))
        self.report.is_over = part(message, "part", "reason") != "tool-calls"

    def _error(self, error: object) -> None:
        self.report.is_over = True
        said, status = part(error, "data", "message"), part(error, "data", "statusCode")
        if part(error, "name") == "ContentFilterError":
            self.report.trouble = Trouble(kind=DECLINED, words=str(said)[:400])
            return
        body = part(error, "data", "responseBody")
        found = trouble_of(said, status)
        if found.kind != BILLING and isinstance(body, str) and "insufficient_quota" in body:
            found = found.replace(kind=BILLING, resets_at_ms=None)
        if found.kind == LIMIT and found.resets_at_ms is None and isinstance(body, str):
            stamp = re.search(r'"resets_at": ?(\d{10})\b', body)
            found = found.replace(resets_at_ms=epoch_ms(int(stamp[1])) if stamp else None)
        self.report.trouble = found
