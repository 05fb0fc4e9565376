"""`codex`: Codex, headless. The brief comes by stdin; its sandbox stops what the job may not do."""

from __future__ import annotations

import glob
import os

from mam.work.adapters.coding import CodingAdapter
from mam.work.reports.codex import CodexReader, read_rollout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.work.adapters.port import Adapter
    from mam.work.reports.report import Report

PROGRAM, PACKAGE = "codex", "@openai/codex"
HELP = (("exec", "--help"), ("exec", "resume", "--help"))
FLAGS = ("--json", "--sandbox", "--config", "--skip-git-repo-check", "--color", "resume")
LOGIN = "run `codex login`, or set the key that your provider needs"

_SANDBOXES = {"ask": "read-only", "edit": "workspace-write", "full": "danger-full-access"}
_LINE_LIMIT = 4 << 20
_FILE_LIMIT = 256 << 20


def look_at_session(report: Report, since: str) -> None:
    """A command that the sandbox stopped is often told on no line, but always in the session's file; so is a question
    that could not be asked."""
    if report.session is None:
        return
    home = os.environ.get("CODEX_HOME") or os.path.join(os.path.expanduser("~"), ".codex")
    pattern = os.path.join(
        glob.escape(home), "sessions", "*", "*", "*", f"rollout-*{glob.escape(report.session)}.jsonl"
    )
    for path in sorted(glob.glob(pattern))[-1:]:
        try:
            read_rollout(_lines(path), since, report)
        except OSError:
            return


def _lines(path: str) -> Iterator[bytes]:
    """In bounded memory: what is longer than a line may be comes in pieces, none of which is JSON."""
    with open(path, "rb") as file:
        read = 0
        while read < _FILE_LIMIT and (line := file.readline(_LINE_LIMIT)):
            read += len(line)
            yield line


class CodexAdapter(CodingAdapter):
    name, program, package, login = "codex", PROGRAM, PACKAGE, LOGIN
    reader = CodexReader
    read_session_file = staticmethod(look_at_session)

    def permission_args(self, permissions: str) -> tuple[list[str], dict[str, str]]:
        """Nobody is there to approve, so nothing is asked: what the sandbox does not allow fails."""
        return ["--sandbox", _SANDBOXES[permissions], "--config", 'approval_policy="never"'], {}

    def command_args(self, rights: list[str], session: str | None) -> list[str]:
        """mam chooses the directory, so it need not be a repository."""
        return [
            "exec", "--json", "--color", "never", "--skip-git-repo-check", *rights,
            *([] if session is None else ["resume", session]), "-",
        ]  # fmt: skip


def adapter() -> Adapter:
    return CodexAdapter()
