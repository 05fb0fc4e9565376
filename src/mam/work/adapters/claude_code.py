"""`claude-code`: Claude Code, headless. mam sends the brief on stdin and reads one JSON line per event of the turn."""

from __future__ import annotations

from mam.work.adapters.coding import DOOR_VERBS, CodingAdapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json
    from mam.work.adapters.port import Adapter

HELP = (("--help",),)
FLAGS = (
    "--print", "--output-format", "--verbose", "--permission-mode", "--allowedTools", "--disallowedTools", "--resume",
    "--model",
)  # fmt: skip

_MODES = {"ask": "default", "edit": "acceptEdits", "full": "bypassPermissions"}
_REPORTING = ",".join(f"Bash(mam {verb}:*)" for verb in DOOR_VERBS)


class ClaudeCodeAdapter(CodingAdapter):
    name = "claude-code"

    def permission_args(self, permissions: str) -> tuple[list[str], dict[str, str]]:
        allowed = [] if permissions == "full" else ["--allowedTools", _REPORTING]
        return ["--permission-mode", _MODES[permissions], *allowed], {}

    def command_args(self, own_args: list[str], session: str | None) -> list[str]:
        """No person can answer a question here, so the tool that asks one is disabled."""
        return [
            "--print", "--output-format", "stream-json", "--verbose", "--disallowedTools", "AskUserQuestion",
            *own_args,
            *([] if session is None else ["--resume", session]),
        ]  # fmt: skip


def adapter(settings: Json) -> Adapter:
    return ClaudeCodeAdapter(settings)
