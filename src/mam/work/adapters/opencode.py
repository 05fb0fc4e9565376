"""`opencode`: OpenCode, headless. The brief comes by stdin; rights go by its environment, over the user's own rules."""

from __future__ import annotations

import json

from mam.work.adapters.coding import DOOR_VERBS, passed_on, program_of, session_of
from mam.work.adapters.port import REPORT, Launch
from mam.work.reports.opencode import OpenCodeReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json
    from mam.work.adapters.port import Adapter
    from mam.work.places import Place

PROGRAM, PACKAGE = "opencode", "opencode-ai"
HELP = (("run", "--help"),)
FLAGS = ("--format", "--session", "--print-logs", "--log-level")
LOGIN = "run `opencode auth login`"

_SPEAKS = {f"mam {verb} *": "allow" for verb in DOOR_VERBS}
_RULES: dict[str, Json] = {
    "ask": {"edit": "ask", "bash": {"*": "ask", **_SPEAKS}, "webfetch": "ask", "external_directory": "ask"},
    "edit": {"edit": "allow", "bash": {"*": "ask", **_SPEAKS}, "webfetch": "ask", "external_directory": "ask"},
    "full": {"*": "allow", "bash": "allow", "edit": "allow", "webfetch": "allow", "external_directory": "allow"},
}
"""What would be asked is refused, since nobody is there to answer."""


class OpenCodeAdapter:
    name = "opencode"

    def launch(self, job: Job, brief: str, place: Place, _brief_file: str) -> Launch:
        """Its log is read too: on stdout it says nothing while its vendor does not answer."""
        rules = json.dumps(_RULES[job.permissions])
        session = session_of(job, place)
        argv = [
            program_of(self.name, PROGRAM, PACKAGE), "run", "--format", "json", "--print-logs", "--log-level", "ERROR",
            *([] if session is None else ["--session", session]),
        ]  # fmt: skip
        return Launch(
            argv=tuple(argv),
            env={"OPENCODE_PERMISSION": rules},
            stdin=brief.encode(errors="replace"),
            success=REPORT,
            reader=OpenCodeReader,
            about=passed_on(job, [f"OPENCODE_PERMISSION={rules}"], session),
            login=LOGIN,
        )


def adapter() -> Adapter:
    return OpenCodeAdapter()
