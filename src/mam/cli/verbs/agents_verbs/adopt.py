"""Add a tmux session that you started yourself.

The session gets a record, a lease and a companion process, like a session of `mam agents start`. Without --socket, mam
looks for it on its own tmux server, then on the server of this terminal or tmux's default server. A known session that
lost its companion keeps its generation.

  mam agents adopt claude --session work --agent claude-code
"""

from __future__ import annotations

import os

from mam.agents.errors import NoServer, SessionGone
from mam.agents.files_directory import agents_directory
from mam.agents.launch import Plan, adopt
from mam.agents.lookup import id_for_name
from mam.agents.names import bare_name, canonical_name, check_agent_id
from mam.agents.open_directory import configured_prefix
from mam.agents.tmux import Tmux
from mam.cli.verbs.agents_verbs.common import directory_of, print_started
from mam.cli.verbs.agents_verbs.start import add_place, definition_of, session_name
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.record import AgentRecord
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="NAME", help="the agent's name")
    parser.add_argument("--agent", metavar="A", help="the kind of agent (default shell)")
    parser.add_argument("--id", metavar="ID", help="its id; default: derived from the name")
    parser.add_argument("--socket", metavar="PATH", help="the socket of the tmux server")
    add_place(parser)


def run(options: Options) -> int:
    if options.word is None:
        raise BadInput(why="give a name: `mam agents adopt NAME --session S`")
    directory = directory_of(options)
    name = canonical_name(options.word, configured_prefix())
    agent_id = id_for_name(directory, name) if options.id is None else check_agent_id(options.id)
    session = session_name(options.session or bare_name(name))
    tmux = _server_of(session, options.socket, bare_name(name))
    held = directory.read(agent_id).record
    command, workdir, hooks = _started_with(held, tmux, session)
    plan = Plan(
        agent_name=name,
        agent_id=agent_id,
        tool=options.agent or (held.identity.tool if held is not None else "shell"),
        session=session,
        command=command,
        workdir=workdir,
        agent_def_dir=definition_of(options.agent_def_dir),
        lease_seconds=options.lease,
        hooks=hooks,
    )
    return print_started(options, adopt(directory, agents_directory(), plan, tmux, held))


def _server_of(session: str, socket: str | None, name: str) -> Tmux:
    if socket is not None:
        return Tmux(os.path.abspath(socket))
    for tmux in (Tmux(), Tmux(_users_socket())):
        try:
            if tmux.first_pane(session) is not None:
                return tmux
        except NoServer:
            continue
    raise SessionGone(name=name, session=session)


def _users_socket() -> str:
    own = os.environ.get("TMUX", "").rpartition(",")[0].rpartition(",")[0]
    base = os.environ.get("TMUX_TMPDIR") or "/tmp"  # noqa: S108 - where tmux itself puts it
    return own or os.path.join(base, f"tmux-{os.getuid()}", "default")


def _started_with(held: AgentRecord | None, tmux: Tmux, session: str) -> tuple[tuple[str, ...], str, bool]:
    """Command, directory and hooks from the manifest, if it is the same session."""
    from mam.agents.control import check_manifest
    from mam.errors import MamError

    pane = tmux.first_pane(session)
    if held is None or pane is None or pane.generation != held.generation_id:
        return (), "/", False
    try:
        manifest = check_manifest(held)
    except MamError:
        return (), "/", False
    return manifest.command, manifest.workdir, bool(manifest.hooks)
