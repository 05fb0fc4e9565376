"""Checks before mam acts on a session, so that an outdated record never leads to another session.

Each check has its own error. If a check cannot be made, the state is unknown and mam does nothing.
"""

from __future__ import annotations

import os
import socket

from mam.agents import errors
from mam.agents.manifest import read_manifest
from mam.agents.names import bare_name, is_name
from mam.agents.tmux import Tmux
from mam.machine.processes import ProcessId, identify
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.manifest import Manifest
    from mam.agents.record import AgentRecord
    from mam.agents.tmux import Pane

TMUX_BACKENDS = ("tmux", "local_interactive", "claude_headless", "codex_headless", "gemini_headless", "kimi_headless")
"""mam's own backend, and those of the other system that run in tmux."""


class Target(Frozen):
    """A session that has just passed every check."""

    name: str
    record: AgentRecord
    manifest: Manifest
    tmux: Tmux
    pane: Pane
    agent_def_dir: str | None


def check_target(record: AgentRecord, agent_def_dir: str | None = None) -> Target:
    manifest = check_manifest(record)
    definition = _check_definition_dir(record, manifest, agent_def_dir)
    tmux, pane = check_pane(record, manifest)
    return Target(name=_name(record), record=record, manifest=manifest, tmux=tmux, pane=pane, agent_def_dir=definition)


def check_manifest(record: AgentRecord) -> Manifest:
    """The manifest, if it belongs to this record. The name of the tmux session is no proof of that."""
    name = _name(record)
    manifest = read_manifest(record.runtime.manifest_path, name)
    if manifest.backend not in TMUX_BACKENDS:
        raise errors.BackendNotTmux(name=name, backend=manifest.backend[:80])
    session = record.terminal.current_session_name or record.terminal.last_session_name
    if manifest.tmux_session_name != session:
        raise errors.SessionDiffers(name=name, manifest=manifest.tmux_session_name[:80], record=session[:80])
    if not is_name(manifest.agent_name) or bare_name(manifest.agent_name) != name:
        raise errors.NameDiffers(name=name, manifest=manifest.agent_name[:80])
    if manifest.generation_id != record.generation_id:
        raise errors.GenerationDiffers(
            what="The manifest", name=name, found=manifest.generation_id[:80], record=record.generation_id
        )
    return manifest


def check_pane(record: AgentRecord, manifest: Manifest) -> tuple[Tmux, Pane]:
    """The recorded server, session and pane. Others of the same name are rejected."""
    name, mam = _name(record), record.mam
    if mam.host and mam.host != socket.gethostname():
        raise errors.OnAnotherHost(name=name, host=mam.host[:80])
    address = mam.socket or manifest.tmux_socket
    if not address:
        raise errors.ServerUnknown(name=name, why="neither record nor manifest names the socket of its tmux server")
    tmux = Tmux(address)
    try:
        panes = tmux.panes()
    except errors.NoServer:
        raise errors.ServerGone(name=name, socket=address) from None
    except errors.NoAnswer as error:
        raise errors.ServerUnknown(name=name, why=str(error).rstrip(".")) from None
    session = record.terminal.current_session_name or ""
    there = [pane for pane in panes if pane.session == session]
    if not there:
        raise errors.SessionGone(name=name, session=session)
    pane = next((pane for pane in there if not mam.pane or pane.pane == mam.pane), None)
    _check_server(record, there[0], address)
    if pane is None or (mam.session_id and pane.session_id != mam.session_id):
        raise errors.SessionReplaced(name=name, session=session)
    if pane.generation != record.generation_id:
        found = pane.generation or "none"
        raise errors.GenerationDiffers(
            what="The tmux session", name=name, found=found[:80], record=record.generation_id
        )
    return tmux, pane


def _check_server(record: AgentRecord, pane: Pane, address: str) -> None:
    """The socket's path is no proof: after a restart another server uses it, and its ids also start at zero."""
    expected = ProcessId.from_json(record.mam.server)
    if expected is not None and identify(pane.server_pid) != expected:
        raise errors.ServerReplaced(name=_name(record), socket=address)


def _check_definition_dir(record: AgentRecord, manifest: Manifest, override: str | None) -> str | None:
    """The directory that defines the agent. An explicit choice takes precedence over the record and the manifest."""
    path = override or record.runtime.agent_def_dir or manifest.agent_def_dir
    if path is None:
        return None
    if not os.path.isabs(path):
        raise errors.DefinitionNotAbsolute(name=_name(record), path=path[:200])
    if "\0" in path or not os.path.isdir(path):
        raise errors.DefinitionMissing(name=_name(record), path=path[:200])
    return path


def _name(record: AgentRecord) -> str:
    return bare_name(record.agent_name)
