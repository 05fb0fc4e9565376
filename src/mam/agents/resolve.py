"""From a name, an id or a tmux session to the one live record, or to a plain answer why there is none."""

from __future__ import annotations

from mam.agents.errors import AmbiguousName, NoLiveRecord
from mam.agents.lookup import AMBIGUOUS, LIVE, MISNAMED, MISSING, Answer, judged
from mam.agents.names import bare_name, default_agent_id, is_agent_id, is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.agents.port import Directory
    from mam.agents.record import AgentRecord


def by_id(directory: Directory, agent_id: str) -> Answer:
    if not is_agent_id(agent_id):
        return Answer(kind=MISNAMED, reason=f"{agent_id[:80]!r} is not an id")
    return judged(directory.look(agent_id), directory.clock.now())


def by_name(directory: Directory, name: str) -> Answer:
    """The unique fresh match. Without one, what stands at the id that this name would have by default is told."""
    if not is_name(name):
        return Answer(kind=MISNAMED, reason=f"{name[:80]!r} is not a name")
    wanted = bare_name(name)
    answer = _unique(directory, lambda record: bare_name(record.agent_name) == wanted)
    if answer.kind != MISSING:
        return answer
    own = judged(directory.look(default_agent_id(wanted)), directory.clock.now())
    if own.kind == LIVE and own.record is not None:
        return Answer(kind=MISNAMED, reason=f"at its id stands a record named {own.record.agent_name}")
    return answer if own.kind == MISSING else own


def by_session(directory: Directory, session: str) -> Answer:
    return _unique(directory, lambda record: record.terminal.current_session_name == session)


def by_any(directory: Directory, text: str) -> Answer:
    """What a person typed: an id that is there, else a name."""
    if is_agent_id(text):
        answer = by_id(directory, text)
        if answer.kind != MISSING:
            return answer
    return by_name(directory, text)


def needed(answer: Answer, name: str) -> AgentRecord:
    """The live record, for whoever cannot go on without one."""
    if answer.kind == AMBIGUOUS:
        raise AmbiguousName(name=name[:80], candidates=list(answer.candidates))
    if answer.kind != LIVE or answer.record is None:
        raise NoLiveRecord(name=name[:80], why=answer.reason)
    return answer.record


def _unique(directory: Directory, matches: Callable[[AgentRecord], bool]) -> Answer:
    now = directory.clock.now()
    found: list[Answer] = []
    for look in directory.looks():
        if look.record is not None and matches(look.record):
            found.append(judged(look, now))
    live = [answer.record for answer in found if answer.kind == LIVE and answer.record is not None]
    if len(live) > 1:
        ids = tuple(sorted(record.agent_id for record in live))
        return Answer(kind=AMBIGUOUS, reason=f"{len(ids)} live records match", candidates=ids)
    if live:
        return Answer(kind=LIVE, record=live[0])
    return found[0] if found else Answer(kind=MISSING, reason="there is none")
