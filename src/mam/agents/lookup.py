"""What a look into the directory finds. Nothing raises here: a directory is out of date by nature."""

from __future__ import annotations

from mam.agents.lease import is_fresh
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.record import AgentRecord
    from mam.util.clock import Moment

FOUND, MISSING, MALFORMED, INVALID, NEWER = "found", "missing", "malformed", "invalid", "newer"
LIVE, EXPIRED, STOPPED, MISNAMED, AMBIGUOUS = "live", "expired", "stopped", "misnamed", "ambiguous"


class Look(Frozen):
    """What stands at one id: a record, or why there is none."""

    agent_id: str
    kind: str
    record: AgentRecord | None = None
    reason: str = ""
    path: str = ""
    """Where it stands, for people."""


class Answer(Frozen):
    """What became of a search: the one live record, or which kind of nothing it was."""

    kind: str
    record: AgentRecord | None = None
    """The live record; with `expired` and `stopped` the one that was found."""
    reason: str = ""
    candidates: tuple[str, ...] = ()

    @property
    def live(self) -> AgentRecord | None:
        return self.record if self.kind == LIVE else None


def judged(look: Look, now: Moment) -> Answer:
    """One record by itself."""
    record = look.record
    if record is None:
        return Answer(kind=look.kind, reason=look.reason)
    if not record.live:
        state = record.lifecycle.state
        return Answer(kind=STOPPED, record=record, reason=f"it is {state} since {record.lifecycle.stopped_at}")
    if not is_fresh(record, now):
        assert record.liveness is not None
        return Answer(kind=EXPIRED, record=record, reason=f"its lease ended at {record.liveness.lease_expires_at}")
    return Answer(kind=LIVE, record=record)
