"""What installing and removing share: the options, the shown changes, the question."""

from __future__ import annotations

from difflib import unified_diff

from mam.cli.render.confirm import is_confirmed
from mam.cli.render.streams import say
from mam.errors import BadInput
from mam.machine.agent_tree import check_outside_agents
from mam.plugin.agents import AGENTS
from mam.skill import project_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.plugin.installation import Change


def add_plugin_options(parser: Parser) -> None:
    parser.add_argument(
        "--agent", action="append", default=[], metavar="A", help=f"{', '.join(AGENTS)}; repeatable; default: all here"
    )
    parser.add_argument("--project", action="store_true", help="only for the repository of this directory")
    parser.add_argument("--dry-run", action="store_true", help="only show the changes")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def project_of(options: Options) -> str | None:
    check_outside_agents("plugin")
    return project_root(".") if options.project else None


def chosen_agents(options: Options, default: list[str]) -> list[str]:
    for agent in options.agent:
        if agent not in AGENTS:
            raise BadInput(why=f"there is no plugin for {agent[:40]!r}; --agent takes {', '.join(AGENTS)}")
    return list(dict.fromkeys(options.agent or default))


def show(changes: list[Change]) -> None:
    """As a diff on stdout."""
    import sys

    from mam.cli.render.streams import stdout_is_terminal
    from mam.util.escapes import EscapeFilter

    for change in changes:
        before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
        old, new = change.path if change.before is not None else "/dev/null", change.path
        new = "/dev/null" if change.after is None else new
        text = "".join(f"{line}\n" for line in unified_diff(before, after, old, new, lineterm=""))
        data = text.encode(errors="replace")
        sys.stdout.buffer.write(EscapeFilter().filter(data) if stdout_is_terminal() else data)
    sys.stdout.flush()


def may_write(options: Options, changes: list[Change]) -> bool:
    """Whether the user has agreed to write what was shown."""
    if options.dry_run or not changes:
        return False
    files = "this file" if len(changes) == 1 else f"these {len(changes)} files"
    if options.yes or is_confirmed(f"Change {files}?"):
        return True
    say("mam changed nothing")
    return False
