"""Find the live record of an agent by name, id or tmux session.

A directory is out of date by nature, so a missing or expired record is a result and not an exception.
"""

from __future__ import annotations

from mam.agents.errors import AmbiguousName, NoLiveRecord
from mam.agents.lease import is_fresh
from mam.agents.names import bare_name, default_agent_id, default_agent_ids, is_agent_id, is_name, same_name
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.agents.port import Directory
    from mam.agents.record import AgentRecord
    from mam.util.clock import Moment

FOUND, MISSING, MALFORMED, INVALID, NEWER = "found", "missing", "malformed", "invalid", "newer"
LIVE, EXPIRED, STOPPED, MISNAMED, AMBIGUOUS = "live", "expired", "stopped", "misnamed", "ambiguous"


class Lookup(Frozen):
    """The result of reading one id: its record, or why there is none."""

    agent_id: str
    kind: str
    record: AgentRecord | None = None
    reason: str = ""
    path: str = ""
    """Where the record is stored, for messages."""


class Resolution(Frozen):
    """The result of a search: the one live record, or why there is none."""

    kind: str
    record: AgentRecord | None = None
    """The live record; for `expired` and `stopped` the record that was found."""
    reason: str = ""
    candidates: tuple[str, ...] = ()

    @property
    def live(self) -> AgentRecord | None:
        return self.record if self.kind == LIVE else None


def resolve_lookup(lookup: Lookup, now: Moment) -> Resolution:
    """Judge one record by its lifecycle and its lease."""
    record = lookup.record
    if record is None:
        return Resolution(kind=lookup.kind, reason=lookup.reason)
    if not record.live:
        state = record.lifecycle.state
        return Resolution(
            kind=STOPPED, record=record, reason=f"it has been {state} since {record.lifecycle.stopped_at}"
        )
    if not is_fresh(record, now):
        assert record.liveness is not None
        return Resolution(kind=EXPIRED, record=record, reason=f"its lease ended at {record.liveness.lease_expires_at}")
    return Resolution(kind=LIVE, record=record)


def by_id(directory: Directory, agent_id: str) -> Resolution:
    if not is_agent_id(agent_id):
        return Resolution(kind=MISNAMED, reason=f"{agent_id[:80]!r} is not an id")
    return resolve_lookup(directory.read(agent_id), directory.clock.now())


def by_name(directory: Directory, name: str) -> Resolution:
    """The only live match. If there is none, the result describes the record at a default id of this name."""
    if not is_name(name):
        return Resolution(kind=MISNAMED, reason=f"{name[:80]!r} is not a name")
    wanted = bare_name(name)
    resolution = _unique(directory, lambda record: bare_name(record.agent_name) == wanted)
    if resolution.kind != MISSING:
        return resolution
    for agent_id in default_agent_ids(wanted):
        own = resolve_lookup(directory.read(agent_id), directory.clock.now())
        if own.kind == LIVE and own.record is not None:
            return Resolution(kind=MISNAMED, reason=f"its id belongs to a record named {own.record.agent_name}")
        if own.kind != MISSING:
            return own
    return resolution


def id_for_name(directory: Directory, name: str) -> str:
    """The id under which this name is published: that of its live record or its latest one, otherwise the default.

    So of two systems that share the directory, one cannot publish a name that the other one has.
    """
    resolution = by_name(directory, name)
    if resolution.kind == AMBIGUOUS:
        raise AmbiguousName(name=name[:80], candidates=list(resolution.candidates))
    if resolution.record is not None and same_name(resolution.record.agent_name, name):
        return resolution.record.agent_id
    return default_agent_id(name)


def by_session(directory: Directory, session: str) -> Resolution:
    return _unique(directory, lambda record: record.terminal.current_session_name == session)


def by_any(directory: Directory, text: str) -> Resolution:
    """Resolve user input: an existing id, otherwise a name."""
    if is_agent_id(text):
        resolution = by_id(directory, text)
        if resolution.kind != MISSING:
            return resolution
    return by_name(directory, text)


def require_live(resolution: Resolution, name: str) -> AgentRecord:
    """The live record. Raises AmbiguousName or NoLiveRecord if there is no single one."""
    if resolution.kind == AMBIGUOUS:
        raise AmbiguousName(name=name[:80], candidates=list(resolution.candidates))
    if resolution.kind != LIVE or resolution.record is None:
        raise NoLiveRecord(name=name[:80], why=resolution.reason)
    return resolution.record


def _unique(directory: Directory, matches: Callable[[AgentRecord], bool]) -> Resolution:
    now = directory.clock.now()
    found: list[Resolution] = []
    for lookup in directory.read_all():
        if lookup.record is not None and matches(lookup.record):
            found.append(resolve_lookup(lookup, now))
    live = [resolution.record for resolution in found if resolution.kind == LIVE and resolution.record is not None]
    if len(live) > 1:
        ids = tuple(sorted(record.agent_id for record in live))
        return Resolution(kind=AMBIGUOUS, reason=f"{len(ids)} live records match", candidates=ids)
    if live:
        return Resolution(kind=LIVE, record=live[0])
    return found[0] if found else Resolution(kind=MISSING, reason="there is none")
