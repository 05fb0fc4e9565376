"""Stop a session and its program."""

from __future__ import annotations

import signal
import time

from mam.agents import acts, errors
from mam.agents.control import check_target
from mam.agents.status import is_proven_gone
from mam.agents.tmux import generation_condition
from mam.machine.processes import ProcessId, is_alive, send_signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.control import Target
    from mam.agents.port import Directory
    from mam.agents.record import AgentRecord

HANGUP_SECONDS, STEP = 5.0, 0.02


def stop_session(directory: Directory, record: AgentRecord, reason: str) -> AgentRecord:
    """Mark the record as stopped after the session has ended or has provably gone."""
    if record.live:
        try:
            target = check_target(record, agent_def_dir="/")  # the agent's definition does not matter for stopping it
        except (errors.ServerGone, errors.ServerReplaced, errors.SessionGone):
            if not is_proven_gone(record):
                raise
        else:
            _kill(target)
    stopped = directory.change(record.agent_id, acts.stop(record.generation_id, reason))
    assert stopped is not None
    return stopped


def _kill(target: Target) -> None:
    process = ProcessId.from_json(target.record.mam.process)
    same = generation_condition(target.record.generation_id)
    # In quotes, because tmux would expand $1 as a variable.
    if not target.tmux.run_if(target.pane.pane, same, f"kill-session -t '{target.pane.session_id}'"):
        raise errors.SessionReplaced(name=target.name, session=target.pane.session)
    if process is None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        if _ended(process):
            return
        send_signal(process, number)


def _ended(process: ProcessId) -> bool:
    """Most programs end on SIGHUP."""
    ends = time.monotonic() + HANGUP_SECONDS
    while is_alive(process):
        if time.monotonic() >= ends:
            return False
        time.sleep(STEP)
    return True
