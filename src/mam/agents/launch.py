"""Start a session, or adopt one that a user started by hand.

mam reserves the name before it starts anything: of two concurrent starts of one agent, the second never runs its
program. If mam is killed between the steps, the reservation expires.
"""

from __future__ import annotations

import os
import socket

from mam.agents import acts
from mam.agents.adopted import note_adopted
from mam.agents.companion import start_companion
from mam.agents.errors import EndedAtOnce, NoServer, SessionGone, SessionOccupied, TmuxFailed
from mam.agents.hook_log import SESSION_DIR, remove_old_logs
from mam.agents.hook_setup import BRIEFS, HOOKED, add_hooks
from mam.agents.lease import DEFAULT_SECONDS
from mam.agents.manifest import Manifest, session_root, write_manifest
from mam.agents.names import bare_name
from mam.agents.record import ACTIVE, RELAUNCHING, AgentRecord, Identity, Lifecycle, MamGroup, Runtime, Terminal
from mam.agents.tmux import Tmux
from mam.errors import AgentNotFound, BadInput
from mam.machine.environment import find_program
from mam.machine.processes import identify
from mam.util.frozen import Frozen
from mam.util.state_dir import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.lookup import Lookup
    from mam.agents.port import Directory
    from mam.agents.tmux import Pane
    from mam.util.clock import Moment

RESERVED_SECONDS = 60.0


class Plan(Frozen):
    """The command of a session and the identity of its agent."""

    agent_name: str
    agent_id: str
    tool: str
    session: str
    command: tuple[str, ...] = ()
    workdir: str = "/"
    agent_def_dir: str | None = None
    lease_seconds: float = DEFAULT_SECONDS
    hooks: bool = True
    """Whether to configure the agent to call `mam hook`."""


def launch(directory: Directory, agents_dir: str, plan: Plan) -> AgentRecord:
    """Start a new generation in a new tmux session on mam's own server."""
    _check_command(plan)
    tmux, generation = Tmux(), directory.clock.new_id()
    before = directory.read(plan.agent_id).record
    reserved = _record(directory, agents_dir, plan, generation, RELAUNCHING)
    directory.change(plan.agent_id, acts.publish(reserved, RESERVED_SECONDS))
    try:
        pane = _start_session(tmux, plan, generation, session_root(agents_dir, plan.agent_id))
        try:
            record = _publish_session(directory, agents_dir, plan, generation, pane)
            _check_runs(tmux, plan, pane)
            return record
        except BaseException:
            _kill_session(tmux, pane)
            raise
    except BaseException:
        directory.change(plan.agent_id, _restore_previous(generation, before))
        raise


def _check_runs(tmux: Tmux, plan: Plan, pane: Pane) -> None:
    """Most programs that cannot start have ended by the time the companion runs."""
    try:
        now = tmux.pane(pane.pane)
    except NoServer:
        now = None
    if now is None or now.dead or now.generation != pane.generation:
        raise _ended_at_once(plan)


def _ended_at_once(plan: Plan) -> EndedAtOnce:
    hooked = plan.hooks and plan.tool in HOOKED
    hint = f" (it was given the hooks of {plan.tool}; --no-hooks leaves them out)" if hooked else ""
    return EndedAtOnce(program=repr(plan.command[0][:80]), name=bare_name(plan.agent_name), hint=hint)


def _kill_session(tmux: Tmux, pane: Pane) -> None:
    try:
        tmux.run("kill-session", "-t", pane.session_id)
    except (NoServer, TmuxFailed):
        pass  # it has already ended


def adopt(directory: Directory, agents_dir: str, plan: Plan, tmux: Tmux, held: AgentRecord | None) -> AgentRecord:
    """Adopt an existing session. If the session still carries the record's generation, it keeps it."""
    try:
        pane = tmux.first_pane(plan.session)
    except NoServer:
        pane = None
    if pane is None:
        raise SessionGone(name=bare_name(plan.agent_name), session=plan.session)
    generation = directory.clock.new_id()
    if held is not None and held.live and held.generation_id == pane.generation:
        generation = held.generation_id
    reserved = _record(directory, agents_dir, plan, generation, RELAUNCHING)
    before = directory.read(plan.agent_id).record
    directory.change(plan.agent_id, acts.publish(reserved, RESERVED_SECONDS))
    try:
        tmux.mark(pane, generation, plan.agent_id)
        note_adopted(pane, session_root(agents_dir, plan.agent_id), generation)
        return _publish_session(directory, agents_dir, plan, generation, pane)
    except BaseException:
        directory.change(plan.agent_id, _restore_previous(generation, before))
        raise


def _start_session(tmux: Tmux, plan: Plan, generation: str, root: str) -> Pane:
    try:
        taken = tmux.first_pane(plan.session)
    except NoServer:
        taken = None
    if taken is not None:
        raise SessionOccupied(session=plan.session, socket=taken.socket)
    root = make_private(root)
    make_private(os.path.join(root, BRIEFS))
    remove_old_logs(root, generation)
    command, added = add_hooks(plan.tool, plan.command, root, plan.workdir) if plan.hooks else (plan.command, {})
    env = {
        "MAM_AGENT_ID": plan.agent_id, "MAM_AGENT_NAME": plan.agent_name, "MAM_GENERATION": generation,
        SESSION_DIR: root, **added,
    }  # fmt: skip
    pane = tmux.new_session(plan.session, plan.workdir, command, env)
    if pane is None:
        raise _ended_at_once(plan)
    return pane


def _publish_session(directory: Directory, agents_dir: str, plan: Plan, generation: str, pane: Pane) -> AgentRecord:
    """Write the manifest, then the record, then start the companion: each refers only to what exists."""
    write_manifest(
        session_root(agents_dir, plan.agent_id),
        Manifest(
            backend="tmux",
            agent_name=plan.agent_name,
            agent_id=plan.agent_id,
            generation_id=generation,
            tmux_session_name=plan.session,
            tmux_socket=pane.socket,
            tool=plan.tool,
            command=plan.command,
            workdir=plan.workdir,
            agent_def_dir=plan.agent_def_dir,
            hooks="yes" if plan.hooks and plan.command and plan.tool in HOOKED else "",
            created_at=directory.clock.now().second,
        ),
    )
    record = _record(directory, agents_dir, plan, generation, ACTIVE).replace(mam=_mam_group(pane))
    published = directory.change(plan.agent_id, acts.publish(record, plan.lease_seconds))
    assert published is not None
    start_companion(directory.opener, published)
    return directory.read(plan.agent_id).record or published


def _record(directory: Directory, agents_dir: str, plan: Plan, generation: str, state: str) -> AgentRecord:
    root = session_root(agents_dir, plan.agent_id)
    return AgentRecord(
        agent_name=plan.agent_name,
        agent_id=plan.agent_id,
        generation_id=generation,
        lifecycle=Lifecycle(
            state=state, relaunchable=bool(plan.command), state_updated_at=directory.clock.now().second
        ),
        identity=Identity(backend="tmux", tool=plan.tool),
        runtime=Runtime(
            manifest_path=os.path.join(root, "manifest.json"), session_root=root, agent_def_dir=plan.agent_def_dir
        ),
        terminal=Terminal(current_session_name=plan.session, last_session_name=plan.session),
        mam=MamGroup(host=socket.gethostname()),
    )


def _mam_group(pane: Pane) -> MamGroup:
    server, process = identify(pane.server_pid), identify(pane.pid)
    return MamGroup(
        host=socket.gethostname(),
        socket=pane.socket,
        server=None if server is None else server.to_json(),
        session_id=pane.session_id,
        session_created=pane.session_created,
        pane=pane.pane,
        process=None if process is None else process.to_json(),
    )


def _restore_previous(generation: str, before: AgentRecord | None) -> acts.Act:
    """Restore the previous record, if this generation still owns the entry."""

    def act(lookup: Lookup, _now: Moment) -> AgentRecord | None:
        if lookup.record is None or lookup.record.generation_id != generation:
            return lookup.record
        return before

    return act


def _check_command(plan: Plan) -> None:
    """Checked before the name is reserved: a missing program would end the session at once."""
    command = plan.command
    if not command or not command[0].strip():
        raise BadInput(why="which program should it run? Put the command after --, as in `-- claude`")
    if "=" in command[0] or command[0].startswith("-"):
        raise BadInput(why=f"{command[0][:80]!r} is not the name of a program")
    if any("\0" in word for word in command):
        raise BadInput(why="the command contains a NUL character")
    program = os.path.join(plan.workdir, command[0]) if "/" in command[0] else command[0]
    if find_program(program, os.environ) is None:
        name = bare_name(plan.agent_name)
        raise AgentNotFound(agent=name, why=f"{command[0][:200]!r} cannot be run here")
