"""The status of an agent: its record, tmux session, process and companion, and where they disagree.

A state that cannot be determined is `unknown`, never `gone`: a tmux server on another host, or a stopped one, looks
like an ended session.
"""

from __future__ import annotations

import socket

from mam.agents.activity import session_state
from mam.agents.control import check_target
from mam.agents.errors import NoServer, OnAnotherHost, ServerUnknown
from mam.agents.lookup import LIVE, resolve_lookup
from mam.agents.names import bare_name
from mam.agents.tmux import Tmux
from mam.errors import MamError
from mam.machine.processes import ProcessId, is_alive
from mam.util.clock import boot_id
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.lookup import Lookup
    from mam.agents.record import AgentRecord, Json
    from mam.jobs.activity import State
    from mam.jobs.record import Job
    from mam.util.clock import Moment

THERE, GONE, UNKNOWN, NONE = "there", "gone", "unknown", "-"


class AgentStatus(Frozen):
    agent_id: str
    agent_name: str
    record: str
    """live, expired, stopped, malformed, …"""
    reason: str
    session: str
    tmux: str
    process: str
    companion: str
    drift: tuple[str, ...]
    generation_id: str | None = None
    state: State | None = None
    """The activity, its source and its time (mam.jobs.activity)."""
    jobs: tuple[Json, ...] | None = None
    """The agent's running jobs; None if the store is unavailable."""


def session_status(lookup: Lookup, now: Moment) -> AgentStatus:
    resolution, record = resolve_lookup(lookup, now), lookup.record
    if record is None:
        return AgentStatus(
            agent_id=lookup.agent_id, agent_name=NONE, record=resolution.kind, reason=resolution.reason, session=NONE,
            tmux=NONE, process=NONE, companion=NONE, drift=(),
        )  # fmt: skip
    tmux, process, companion = _tmux(record), _process(record, record.mam.process), _companion(record)
    return AgentStatus(
        agent_id=record.agent_id,
        agent_name=record.agent_name,
        record=resolution.kind,
        reason=resolution.reason,
        session=record.terminal.current_session_name or record.terminal.last_session_name,
        tmux=tmux,
        process=process,
        companion=companion,
        drift=tuple(_drift(record, resolution.kind, tmux, process, companion)),
        generation_id=record.generation_id,
        state=session_state(record, now.wall_ms, check_screen=tmux == THERE),
    )


def with_jobs(status: AgentStatus, running: list[Job] | None) -> AgentStatus:
    """Add the jobs that the agent holds by its claim or by a label of its own; `running` is None if the store is
    unavailable."""
    if running is None or status.generation_id is None:
        return status
    labels = (bare_name(status.agent_name), status.agent_name, status.agent_id, f"tmux:{status.session}")
    jobs, drift = [], list(status.drift)
    for job in running:
        holder = job.claimant or {"agent_id": status.agent_id if job.agent_session in labels else None}
        if holder["agent_id"] != status.agent_id:
            continue
        life = holder.get("generation_id")
        fields = {"job_id": job.job_id, "attempt": job.attempt, "label": job.agent_session, "generation_id": life}
        jobs.append(fields)
        if life is not None and status.record != LIVE:
            drift.append(f"the record is {status.record}, but job {job.job_id[:8]} still runs for it")
        elif life not in (None, status.generation_id):
            drift.append(f"job {job.job_id[:8]} is held by generation {life}, not by the record's generation")
    return status.replace(jobs=tuple(jobs), drift=tuple(drift))


def is_proven_gone(record: AgentRecord) -> bool:
    """Whether the session has provably ended: it was on this host, and its server or its place there is gone."""
    if not record.mam.host or record.mam.host != socket.gethostname():
        return False
    server = ProcessId.from_json(record.mam.server)
    if server is not None and (server.boot_id != boot_id() or not is_alive(server)):
        return True
    return _tmux(record) == GONE


def _tmux(record: AgentRecord) -> str:
    """Whether a session of this generation exists. A session that only has the same name does not count."""
    if not _is_on_this_host(record):
        return UNKNOWN
    try:
        panes = Tmux(record.mam.socket).panes()
    except NoServer:
        return GONE
    except MamError:
        return UNKNOWN
    return THERE if any(pane.generation == record.generation_id for pane in panes) else GONE


def _process(record: AgentRecord, value: Json | None) -> str:
    process = ProcessId.from_json(value)
    if process is None or not _is_on_this_host(record):
        return UNKNOWN
    return THERE if is_alive(process) else GONE


def _companion(record: AgentRecord) -> str:
    return NONE if record.mam.companion is None else _process(record, record.mam.companion)


def _is_on_this_host(record: AgentRecord) -> bool:
    return record.mam.host == socket.gethostname() and bool(record.mam.socket)


def _drift(record: AgentRecord, kind: str, tmux: str, process: str, companion: str) -> list[str]:
    found = []
    if kind == LIVE and tmux == GONE:
        found.append("the record is live, but its tmux session is gone")
    elif kind == LIVE and process == GONE:
        found.append("the record is live, but the program in its pane has ended")
    if kind != LIVE and tmux == THERE:
        found.append(f"the record is {kind}, but its tmux session exists")
    if kind == LIVE and tmux == THERE and companion != THERE and companion != UNKNOWN:
        found.append("nothing renews its lease; `mam agents adopt` fixes that")
    if kind == LIVE and tmux == THERE:
        found += _broken_pointers(record)
    return found


def _broken_pointers(record: AgentRecord) -> list[str]:
    try:
        check_target(record)
    except (OnAnotherHost, ServerUnknown):
        return []
    except MamError as error:
        return [str(error)]
    return []
