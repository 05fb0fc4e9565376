"""`codex`: Codex, headless. mam sends the brief on stdin; Codex's sandbox enforces the job's permissions."""

from __future__ import annotations

import glob
import os

from mam.agent_table import agent_kind
from mam.work.adapters.coding import Asking, CodingAdapter, driver_argv
from mam.work.reports.codex import read_rollout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mam.jobs.record import Json
    from mam.work.adapters.coding import AgentStart
    from mam.work.adapters.port import Adapter
    from mam.work.reports.report import Report

HELP = (("exec", "--help"), ("exec", "resume", "--help"))
FLAGS = ("--json", "--sandbox", "--config", "--skip-git-repo-check", "--color", "--model", "resume")

_POLICIES = {"ask": "untrusted", "edit": "on-request"}
"""When Codex asks, if a person can answer (`mam.work.drivers.codex`). With `full` there is nothing to ask for."""
_ASKING_SANDBOX = "workspace-write"
"""With `untrusted`, Codex asks before every command and runs it in the sandbox, which must then let it write."""
_SANDBOXES = {"ask": "read-only", "edit": "workspace-write", "full": "danger-full-access"}
_SETTINGS = ("-c", "--config", "--enable", "--disable")
_LINE_LIMIT = 4 << 20
_FILE_LIMIT = 256 << 20


def read_session_file(report: Report, since: str) -> None:
    """Codex often prints no line for a command that its sandbox stopped, or for a question that it could not ask. Its
    session file always contains both."""
    if report.session is None:
        return
    home = agent_kind("codex").home()
    pattern = os.path.join(
        glob.escape(home), "sessions", "*", "*", "*", f"rollout-*{glob.escape(report.session)}.jsonl"
    )
    for path in sorted(glob.glob(pattern))[-1:]:
        try:
            read_rollout(_lines(path), since, report)
        except OSError:
            return


def _lines(path: str) -> Iterator[bytes]:
    """The file's lines, in bounded memory: a longer line comes in pieces, none of which is JSON."""
    with open(path, "rb") as file:
        read = 0
        while read < _FILE_LIMIT and (line := file.readline(_LINE_LIMIT)):
            read += len(line)
            yield line


class CodexAdapter(CodingAdapter):
    name = "codex"
    read_session_file = staticmethod(read_session_file)

    def permission_args(self, permissions: str) -> tuple[list[str], dict[str, str]]:
        """No person is there to approve, so Codex must not ask: what its sandbox forbids fails."""
        return ["--sandbox", _SANDBOXES[permissions], "--config", 'approval_policy="never"'], {}

    def asking(self, start: AgentStart) -> Asking | None:
        policy = _POLICIES.get(start.permissions)
        if policy is None or not _are_settings(start.args):
            return None
        chosen = [
            word
            for option, value in (("--model", start.model), ("--resume", start.session))
            if value is not None
            for word in (option, value)
        ]
        passed = ("--policy", policy, "--sandbox", _ASKING_SANDBOX)
        argv = driver_argv(self.name, *passed, *chosen, "--", start.program, *start.args)
        return Asking(argv=argv, way="app-server", passed=passed)

    def command_args(self, own_args: list[str], session: str | None) -> list[str]:
        """mam chooses the directory, so Codex need not check that it is a repository."""
        return [
            "exec", "--json", "--color", "never", "--skip-git-repo-check", *own_args,
            *([] if session is None else ["resume", session]), "-",
        ]  # fmt: skip


def _are_settings(args: Sequence[str]) -> bool:
    """Whether these are only settings, which every command of Codex takes."""
    words = iter(args)
    for word in words:
        option, equals, _ = word.partition("=")
        if option not in _SETTINGS or (not equals and next(words, None) is None):
            return False
    return True


def adapter(settings: Json) -> Adapter:
    return CodexAdapter(settings)
