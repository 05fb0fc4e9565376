"""`claude-code`: Claude Code, headless. The brief comes by stdin; every event of the turn is a line of JSON."""

from __future__ import annotations

from mam.work.adapters.coding import DOOR_VERBS, CodingAdapter
from mam.work.reports.claude_code import ClaudeCodeReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.work.adapters.port import Adapter

PROGRAM, PACKAGE = "claude", "@anthropic-ai/claude-code"
HELP = (("--help",),)
FLAGS = (
    "--print", "--output-format", "--verbose", "--permission-mode", "--allowedTools", "--disallowedTools", "--resume",
)  # fmt: skip
LOGIN = "run `claude` once and use /login, or set ANTHROPIC_API_KEY"

_MODES = {"ask": "default", "edit": "acceptEdits", "full": "bypassPermissions"}
_SPEAKS = ",".join(f"Bash(mam {verb}:*)" for verb in DOOR_VERBS)


class ClaudeCodeAdapter(CodingAdapter):
    name, program, package, login = "claude-code", PROGRAM, PACKAGE, LOGIN
    reader = ClaudeCodeReader

    def permission_args(self, permissions: str) -> tuple[list[str], dict[str, str]]:
        speaks = [] if permissions == "full" else ["--allowedTools", _SPEAKS]
        return ["--permission-mode", _MODES[permissions], *speaks], {}

    def command_args(self, rights: list[str], session: str | None) -> list[str]:
        """Nobody can answer a question here, so the tool that asks one is taken away."""
        return [
            "--print", "--output-format", "stream-json", "--verbose", *rights, "--disallowedTools", "AskUserQuestion",
            *([] if session is None else ["--resume", session]),
        ]  # fmt: skip


def adapter() -> Adapter:
    return ClaudeCodeAdapter()
