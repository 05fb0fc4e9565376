"""`claude-code`: Claude Code, headless. mam sends the brief on stdin and reads one JSON line per event of the turn."""

from __future__ import annotations

from mam.work.adapters.coding import DOOR_VERBS, Asking, CodingAdapter, driver_argv

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json
    from mam.work.adapters.coding import AgentStart
    from mam.work.adapters.port import Adapter

HELP = (("--help",),)
FLAGS = (
    "--print", "--output-format", "--verbose", "--permission-mode", "--allowedTools", "--disallowedTools", "--resume",
    "--model", "--input-format", "--permission-prompt-tool",
)  # fmt: skip

_FORMAT = ("--print", "--output-format", "stream-json", "--verbose")
_MODES = {"ask": "default", "edit": "acceptEdits", "full": "bypassPermissions"}
_REPORTING = ",".join(f"Bash(mam {verb}:*)" for verb in DOOR_VERBS)


class ClaudeCodeAdapter(CodingAdapter):
    name = "claude-code"

    def permission_args(self, permissions: str) -> tuple[list[str], dict[str, str]]:
        allowed = [] if permissions == "full" else ["--allowedTools", _REPORTING]
        return ["--permission-mode", _MODES[permissions], *allowed], {}

    def asking(self, start: AgentStart) -> Asking | None:
        arguments, _ = self.permission_args(start.permissions)
        model = [] if start.model is None else ["--model", start.model]
        resumed = [] if start.session is None else ["--resume", start.session]
        argv = driver_argv("claude_code", start.program, *_FORMAT, *arguments, *model, *start.args, *resumed)
        return Asking(argv=argv, way="stdio")

    def command_args(self, own_args: list[str], session: str | None) -> list[str]:
        """No person can answer a question here, so the tool that asks one is disabled."""
        resumed = [] if session is None else ["--resume", session]
        return [*_FORMAT, "--disallowedTools", "AskUserQuestion", *own_args, *resumed]


def adapter(settings: Json) -> Adapter:
    return ClaudeCodeAdapter(settings)
