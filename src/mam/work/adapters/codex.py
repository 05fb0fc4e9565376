"""`codex`: Codex, headless. The brief comes by stdin; its sandbox stops what the job may not do."""

from __future__ import annotations

import glob
import os

from mam.work.adapters.coding import passed_on, program_of, session_of
from mam.work.adapters.port import REPORT, Launch
from mam.work.reports.codex import CodexReader, denied_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.jobs.record import Job
    from mam.work.adapters.port import Adapter
    from mam.work.places import Place
    from mam.work.reports.report import Report

PROGRAM, PACKAGE = "codex", "@openai/codex"
HELP = (("exec", "--help"), ("exec", "resume", "--help"))
FLAGS = ("--json", "--sandbox", "--config", "--skip-git-repo-check", "--color", "resume")
LOGIN = "run `codex login`, or set the key that your provider needs"

_SANDBOXES = {"ask": "read-only", "edit": "workspace-write", "full": "danger-full-access"}
_LINE_LIMIT = 4 << 20
_FILE_LIMIT = 256 << 20


class CodexAdapter:
    name = "codex"

    def launch(self, job: Job, brief: str, place: Place, _brief_file: str) -> Launch:
        """mam chooses the directory, so it need not be a repository. Nobody is there to approve, so nothing is asked:
        what the sandbox does not allow fails."""
        rights = ["--sandbox", _SANDBOXES[job.permissions], "--config", 'approval_policy="never"']
        session = session_of(job, place)
        argv = [
            program_of(self.name, PROGRAM, PACKAGE), "exec", "--json", "--color", "never", "--skip-git-repo-check",
            *rights, *([] if session is None else ["resume", session]), "-",
        ]  # fmt: skip
        return Launch(
            argv=tuple(argv),
            env={},
            stdin=brief.encode(errors="replace"),
            success=REPORT,
            reader=CodexReader,
            about=passed_on(job, rights, session),
            login=LOGIN,
            look_back=denied_in_session,
        )


def denied_in_session(report: Report, since: str) -> None:
    """A command that the sandbox stopped is often told on no line, but always in the session's file."""
    if report.session is None:
        return
    home = os.environ.get("CODEX_HOME") or os.path.join(os.path.expanduser("~"), ".codex")
    pattern = os.path.join(
        glob.escape(home), "sessions", "*", "*", "*", f"rollout-*{glob.escape(report.session)}.jsonl"
    )
    for path in sorted(glob.glob(pattern))[-1:]:
        try:
            for what in denied_in(_lines(path), since):
                report.deny(what)
        except OSError:
            return


def _lines(path: str) -> Iterator[bytes]:
    """In bounded memory: what is longer than a line may be comes in pieces, none of which is JSON."""
    with open(path, "rb") as file:
        read = 0
        while read < _FILE_LIMIT and (line := file.readline(_LINE_LIMIT)):
            read += len(line)
            yield line


def adapter() -> Adapter:
    return CodexAdapter()
