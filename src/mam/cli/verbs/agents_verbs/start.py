"""Start a session in tmux; print its id and generation.

A companion process renews the lease of the session. The session runs on mam's own tmux server (`tmux -L mam`), which
loads your tmux.conf. The agent gets its id and its generation in MAM_AGENT_ID and MAM_GENERATION. mam configures Claude
Code and Codex, for this session only, to call `mam hook`, which reports what they do. While a record of that name has a
valid lease, mam starts nothing (exit 4).

  mam agents start claude --agent claude-code -- claude
  mam agents attach claude
"""

from __future__ import annotations

import os

from mam.agents.files_directory import agents_directory
from mam.agents.hook_setup import AGENT_OF_PROGRAM
from mam.agents.launch import Plan, launch
from mam.agents.lease import DEFAULT_SECONDS
from mam.agents.lookup import id_for_name
from mam.agents.names import bare_name, canonical_name, check_agent_id
from mam.agents.open_directory import configured_prefix
from mam.cli.verbs.agents_verbs.common import directory_of, print_started
from mam.errors import BadInput
from mam.util.human_time import parse_lease_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.takes_command = True
    parser.usage = "mam agents start NAME [options] -- COMMAND [ARGUMENT ...]"
    parser.add_argument("word", nargs="?", metavar="NAME", help="the agent's name")
    parser.add_argument("--agent", metavar="A", help="the kind of agent; default: the name of the program")
    parser.add_argument("--id", metavar="ID", help="its id; default: derived from the name")
    add_place(parser)
    parser.add_argument("--no-hooks", action="store_true", help="do not configure the agent to call `mam hook`")
    parser.add_argument("--cwd", metavar="DIR", help="the directory to work in; default: the current one")


def add_place(parser: Parser) -> None:
    parser.add_argument("--session", metavar="S", help="the name of the tmux session; default: the agent's name")
    parser.add_argument(
        "--agent-def-dir", metavar="DIR", help="the directory of the agent's definition; an absolute path"
    )
    parser.add_argument("--lease", type=parse_lease_seconds, metavar="T", default=DEFAULT_SECONDS,
                        help="the length of the lease, which the companion renews (default 24h)")  # fmt: skip


def run(options: Options) -> int:
    if options.word is None:
        raise BadInput(why="give a name: `mam agents start NAME -- COMMAND`")
    directory = directory_of(options)
    command = tuple(options.command or ())
    name = canonical_name(options.word, configured_prefix())
    plan = Plan(
        agent_name=name,
        agent_id=id_for_name(directory, name) if options.id is None else check_agent_id(options.id),
        tool=options.agent or _tool(command),
        session=session_name(options.session or bare_name(name)),
        command=command,
        workdir=workdir_of(options.cwd),
        agent_def_dir=definition_of(options.agent_def_dir),
        lease_seconds=options.lease,
        hooks=not options.no_hooks,
    )
    return print_started(options, launch(directory, agents_directory(), plan))


def _tool(command: tuple[str, ...]) -> str:
    program = os.path.basename(command[0]) if command else ""
    return AGENT_OF_PROGRAM.get(program, program) or "shell"


def session_name(text: str) -> str:
    """tmux replaces dots and colons, and gives the other characters a meaning at the start of a target."""
    if not text.strip() or not text.isprintable() or any(letter in ".:" for letter in text) or text[0] in "=@$%!{":
        raise BadInput(why=f"{text[:80]!r} cannot name a tmux session: no dot, no colon, none of =@$%!{{ in front")
    return text


def workdir_of(text: str | None) -> str:
    path = os.path.abspath(text or ".")
    if not os.path.isdir(path):
        raise BadInput(why=f"--cwd {path[:200]} is not a directory")
    return path


def definition_of(text: str | None) -> str | None:
    if text is not None and not (os.path.isabs(text) and os.path.isdir(text)):
        raise BadInput(why=f"--agent-def-dir {text[:200]!r} is not the absolute path of a directory")
    return text
