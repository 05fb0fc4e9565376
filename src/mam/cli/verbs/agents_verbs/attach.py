"""Attach your terminal to a session.

Inside tmux, mam switches the client, or attaches within it if the session is on another server.
"""

from __future__ import annotations

import os
import sys

from mam.agents.control import check_target
from mam.agents.lookup import require_live
from mam.cli.verbs.agents_verbs.common import add_agent_arguments, directory_of, look_up
from mam.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.control import Target
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_agent_arguments(parser)
    parser.add_argument("--read-only", action="store_true", help="attach read-only")
    parser.add_argument(
        "--agent-def-dir", metavar="DIR", help="the directory of the agent's definition, if the record is wrong"
    )


def run(options: Options) -> int:
    name, answer = look_up(directory_of(options), options)
    target = check_target(require_live(answer, name), options.agent_def_dir)
    inside = _same_server(target)
    if not inside and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused(why="`mam agents attach` needs a terminal")
    readonly = ["-r"] if options.read_only else []
    verb = "switch-client" if inside else "attach-session"
    argv = target.tmux.argv(verb, *readonly, "-t", target.pane.session_id)
    env = dict(os.environ)
    if not inside:
        env.pop("TMUX", None)  # tmux refuses to attach inside tmux if TMUX is set
    sys.stdout.flush()
    os.execve(argv[0], argv, env)  # noqa: S606 - argv, and no shell is wanted


def _same_server(target: Target) -> bool:
    """TMUX is `socket,pid,session`."""
    socket = os.environ.get("TMUX", "").rpartition(",")[0].rpartition(",")[0]
    try:
        return bool(socket) and os.path.samefile(socket, target.pane.socket)
    except OSError:
        return False
