"""`opencode`: OpenCode, headless. mam sends the brief on stdin and the permissions in the environment, where they
override the user's own rules."""

from __future__ import annotations

import json

from mam.work.adapters.coding import DOOR_VERBS, Asking, CodingAdapter, driver_argv

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json
    from mam.work.adapters.coding import AgentStart
    from mam.work.adapters.port import Adapter

HELP = (("run", "--help"),)
FLAGS = ("--format", "--session", "--print-logs", "--log-level", "--model")

_REPORTING = {f"mam {verb} *": "allow" for verb in DOOR_VERBS}
_RULES: dict[str, Json] = {
    "ask": {"edit": "ask", "bash": {"*": "ask", **_REPORTING}, "webfetch": "ask", "external_directory": "ask"},
    "edit": {"edit": "allow", "bash": {"*": "ask", **_REPORTING}, "webfetch": "ask", "external_directory": "ask"},
    "full": {"*": "allow", "bash": "allow", "edit": "allow", "webfetch": "allow", "external_directory": "allow"},
}
"""`opencode run` denies what it would ask."""


class OpenCodeAdapter(CodingAdapter):
    name = "opencode"

    def permission_args(self, permissions: str) -> tuple[list[str], dict[str, str]]:
        return [], {"OPENCODE_PERMISSION": json.dumps(_RULES[permissions])}

    def asking(self, start: AgentStart) -> Asking | None:
        """The user's arguments are those of `opencode run`."""
        if start.permissions == "full" or start.args:
            return None
        given = (("--model", start.model), ("--session", start.session))
        words = [word for option, value in given if value is not None for word in (option, value)]
        return Asking(argv=driver_argv(self.name, *words, "--", start.program), way="serve")

    def command_args(self, own_args: list[str], session: str | None) -> list[str]:
        """With its log, which mam reads too: stdout shows nothing while the vendor does not answer."""
        resumed = [] if session is None else ["--session", session]
        return ["run", "--format", "json", "--print-logs", "--log-level", "ERROR", *own_args, *resumed]


def adapter(settings: Json) -> Adapter:
    return OpenCodeAdapter(settings)
