"""`opencode`: OpenCode, headless. The brief comes by stdin; rights go by its environment, over the user's own rules."""

from __future__ import annotations

import json

from mam.work.adapters.coding import DOOR_VERBS, CodingAdapter
from mam.work.reports.opencode import OpenCodeReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json
    from mam.work.adapters.port import Adapter

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


class OpenCodeAdapter(CodingAdapter):
    name, program, package, login = "opencode", PROGRAM, PACKAGE, LOGIN
    reader = OpenCodeReader

    def permission_args(self, permissions: str) -> tuple[list[str], dict[str, str]]:
        return [], {"OPENCODE_PERMISSION": json.dumps(_RULES[permissions])}

    def command_args(self, rights: list[str], session: str | None) -> list[str]:
        """Its log is read too: on stdout it says nothing while its vendor does not answer."""
        resumed = [] if session is None else ["--session", session]
        return ["run", "--format", "json", "--print-logs", "--log-level", "ERROR", *rights, *resumed]


def adapter() -> Adapter:
    return OpenCodeAdapter()
