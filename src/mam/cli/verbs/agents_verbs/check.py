"""Check the installed coding agents.

Each line has the agent, its version, its state, and advice or the program's path. mam checks whether the agent has the
options that mam uses, and names the newest version that it was tested with if yours is newer. Without a name, mam
checks every agent. Exit code 1: a named or installed agent cannot be used, or none is installed.

  mam agents check
  mam agents check codex --json
"""

from __future__ import annotations

from mam.agent_table import CODING_AGENTS
from mam.cli.render.streams import print_json_array, print_row
from mam.cli.render.text import nearest, one_line
from mam.errors import BadInput
from mam.work.adapters.installed import MISSING, check_agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.work.adapters.installed import AgentCheck


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", nargs="*", metavar="AGENT", help=f"{', '.join(CODING_AGENTS)}; default: all")


def run(options: Options) -> int:
    for name in options.agent:
        if name not in CODING_AGENTS:
            hint = nearest(name, CODING_AGENTS)
            raise BadInput(why=f"{one_line(name[:80])} is not a coding agent of mam{hint}")
    checks = [check_agent(name) for name in options.agent or CODING_AGENTS]
    if options.json:
        print_json_array(check.as_dict() for check in checks)
    else:
        for check in checks:
            print_row(*_columns(check))
    return 0 if _is_well(checks, named=bool(options.agent)) else 1


def _is_well(checks: list[AgentCheck], *, named: bool) -> bool:
    installed = [check for check in checks if check.state != MISSING]
    wanted = checks if named else installed
    return bool(installed) and all(check.is_usable for check in wanted)


def _columns(check: AgentCheck) -> tuple[str, ...]:
    known = (check.agent, check.version or "-", check.state)
    newer = (
        f"{check.program} (newer than {check.tested}, the newest that mam was tested with)" if check.tested else None
    )
    return (*known, one_line(check.advice or newer or check.program or ""))
