"""`claude-code`: Claude Code, headless. The brief comes by stdin; every event of the turn is a line of JSON."""

from __future__ import annotations

from mam.work.adapters.coding import DOOR_VERBS, passed_on, program_of, session_of
from mam.work.adapters.port import REPORT, Launch
from mam.work.reports.claude_code import ClaudeCodeReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.work.adapters.port import Adapter
    from mam.work.places import Place

PROGRAM, PACKAGE = "claude", "@anthropic-ai/claude-code"
HELP = (("--help",),)
FLAGS = (
    "--print", "--output-format", "--verbose", "--permission-mode", "--allowedTools", "--disallowedTools", "--resume",
)  # fmt: skip
LOGIN = "run `claude` once and use /login, or set ANTHROPIC_API_KEY"

_MODES = {"ask": "default", "edit": "acceptEdits", "full": "bypassPermissions"}
_SPEAKS = ",".join(f"Bash(mam {verb}:*)" for verb in DOOR_VERBS)


class ClaudeCodeAdapter:
    name = "claude-code"

    def launch(self, job: Job, brief: str, place: Place, _brief_file: str) -> Launch:
        """Nobody can answer a question here, so the tool that asks one is taken away."""
        rights = ["--permission-mode", _MODES[job.permissions]]
        if job.permissions != "full":
            rights += ["--allowedTools", _SPEAKS]
        session = session_of(job, place)
        argv = [
            program_of(self.name, PROGRAM, PACKAGE), "--print", "--output-format", "stream-json", "--verbose", *rights,
            "--disallowedTools", "AskUserQuestion", *([] if session is None else ["--resume", session]),
        ]  # fmt: skip
        return Launch(
            argv=tuple(argv),
            env={},
            stdin=brief.encode(errors="replace"),
            success=REPORT,
            reader=ClaudeCodeReader,
            about=passed_on(job, rights, session),
            login=LOGIN,
        )


def adapter() -> Adapter:
    return ClaudeCodeAdapter()
