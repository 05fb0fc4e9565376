"""Reads Claude Code's `--output-format stream-json`.

The line of type `result` ends a turn. Its `subtype` is `success` even if a vendor's error ended the turn, and a denied
tool leaves exit code 0, so mam relies on neither.
"""

from __future__ import annotations

from mam.util.strict_json import safe_json
from mam.work.reports.problems import epoch_ms, problem_from_text
from mam.work.reports.report import (
    BILLING,
    DECLINED,
    FAILED,
    LIMIT,
    LOGIN,
    OVERLOAD,
    AgentProblem,
    Reader,
    get_list,
    get_path,
    one_line,
    tool_summary,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mam.jobs.record import Json
    from mam.work.reports.report import Report

_KINDS = {
    "rate_limit": LIMIT, "overloaded": OVERLOAD, "server_error": OVERLOAD, "authentication_failed": LOGIN,
    "oauth_org_not_allowed": LOGIN, "billing_error": BILLING,
}  # fmt: skip
_HOPELESS = (LOGIN, BILLING)


def turn_usage(lines: Iterable[bytes], names: Collection[str], report: Report) -> None:
    """Adds the tokens of the turn with these names of prompts to the report. A transcript has a line for each part of
    an answer, and the last one counts for the whole answer."""
    answers: dict[str, object] = {}
    prompt: object = None
    for line in lines:
        if b'"promptId"' not in line and b'"usage"' not in line:
            continue
        try:
            message = safe_json(line)
        except ValueError:
            continue
        prompt = get_path(message, "promptId") or prompt
        is_own = isinstance(prompt, str) and prompt in names
        usage = get_path(message, "message", "usage")
        if is_own and isinstance(usage, dict) and get_path(message, "type") == "assistant":
            answers[str(get_path(message, "message", "id"))] = usage
    for usage in answers.values():
        report.count(
            input=get_path(usage, "input_tokens"), cached=get_path(usage, "cache_read_input_tokens"),
            output=get_path(usage, "output_tokens"),
        )  # fmt: skip
        report.count(input=get_path(usage, "cache_creation_input_tokens"))


class ClaudeCodeReader(Reader):
    def __init__(self) -> None:
        super().__init__()
        self._resets_at_ms: int | None = None
        self._last_error: AgentProblem | None = None
        """The problem in the last error line, which is more precise than the result that follows it."""

    def read_message(self, message: Json) -> str | None:
        match message.get("type"):
            case "system":
                return self._system(message)
            case "assistant":
                return self._assistant(message)
            case "result":
                self._result(message)
            case "rate_limit_event":
                if get_path(message, "rate_limit_info", "status") == "rejected":
                    self._resets_at_ms = epoch_ms(get_path(message, "rate_limit_info", "resetsAt"))
            case "user" | "stream_event" | "tool_progress":
                pass
            case _:
                self.report.unknown_lines += 1
        return None

    def _system(self, message: Json) -> str | None:
        match message.get("subtype"):
            case "init":
                self.report.set_session(message.get("session_id"))
                self.report.version = one_line(message.get("claude_code_version"), 40)
            case "permission_denied":
                self._deny(message.get("tool_name"), message.get("tool_use_id"))
            case "api_retry":
                return self._retry(message)
        return None

    def _deny(self, tool: object, call: object) -> None:
        """An answer has a line of its own."""
        if call not in self.report.answered_calls:
            self.report.deny(tool)

    def _retry(self, message: Json) -> str | None:
        """Claude Code retries for minutes; without a login this is useless."""
        error = one_line(message.get("error"), 60) or "unknown"
        if (kind := _KINDS.get(error)) in _HOPELESS:
            self.report.problem = AgentProblem(kind=kind or FAILED, text=error)
            self.report.is_stuck = True
        else:
            self.report.note_error(error)
        attempt, most = message.get("attempt"), message.get("max_retries")
        count = f" {attempt} of {most}" if type(attempt) is int and type(most) is int else ""
        return f"the model does not answer ({error}); retry{count}"

    def _assistant(self, message: Json) -> str | None:
        if message.get("is_api_error_message") is True:
            self._last_error = self._error(message)
            return None
        if get_list(message, "message", "content"):
            self.report.note_progress()
        else:
            self.report.note_empty_step()
        progress = None
        for block in get_list(message, "message", "content"):
            if get_path(block, "type") == "tool_use":
                progress = tool_summary(get_path(block, "name"), get_path(block, "input", "file_path"))
                self.report.asked = None
                if get_path(block, "name") == "AskUserQuestion":
                    self.report.ask(get_path(next(iter(get_list(block, "input", "questions")), None), "question"))
            elif get_path(block, "type") == "text" and message.get("parent_tool_use_id") is None:
                self.report.set_last_message(get_path(block, "text"))
        return progress

    def _error(self, message: Json) -> AgentProblem:
        texts = [get_path(block, "text") for block in get_list(message, "message", "content")]
        found = problem_from_text(next(iter(texts), None), message.get("api_error_status"), self._resets_at_ms)
        kind = _KINDS.get(str(message.get("error")), found.kind)
        return found.replace(kind=kind, resets_at_ms=found.resets_at_ms if kind == LIMIT else None)

    def _count(self, message: Json) -> None:
        """`total_cost_usd` is that of the whole conversation, earlier turns and resumes included. The result of a turn
        that was interrupted says 0 for everything, although it is unknown."""
        since = message.get("model_usage_since_last_result")
        parts = list(since.values()) if isinstance(since, dict) else []
        if not parts and message.get("subtype") == "error_during_execution":
            return
        if not isinstance(since, dict):  # an older version
            usage = message.get("usage")
            self.report.cost(message.get("total_cost_usd"))
            self._add(usage, "input_tokens", "cache_read_input_tokens", "output_tokens", "cache_creation_input_tokens")
            return
        if not parts:
            self.report.cost(0)
            self.report.count(input=0, cached=0, output=0)
        for part in parts:
            self.report.cost(get_path(part, "costUSD"))
            self._add(part, "inputTokens", "cacheReadInputTokens", "outputTokens", "cacheCreationInputTokens")

    def _add(self, usage: object, fresh: str, cached: str, output: str, stored: str) -> None:
        """Input that the vendor stores for later is input too."""
        counts = {"input": fresh, "cached": cached, "output": output}
        self.report.count(**{kind: get_path(usage, name) for kind, name in counts.items()})
        self.report.count(input=get_path(usage, stored))

    def _result(self, message: Json) -> None:
        report = self.report
        report.is_over = True
        if message.get("num_turns") != 0:  # otherwise it repeats an id that does not exist
            report.set_session(message.get("session_id"))
        self._count(message)
        for denial in get_list(message, "permission_denials"):
            self._deny(get_path(denial, "tool_name"), get_path(denial, "tool_use_id"))
        if message.get("stop_reason") == "refusal":
            report.problem = AgentProblem(kind=DECLINED, text=one_line(message.get("result")) or "the model declined")
        elif message.get("is_error") is True or message.get("subtype") != "success":
            text = message.get("result") or message.get("subtype")
            report.problem = self._last_error or problem_from_text(
                text, message.get("api_error_status"), self._resets_at_ms
            )
        else:
            report.problem = None  # earlier problems were resolved
            report.set_last_message(message.get("result"))
