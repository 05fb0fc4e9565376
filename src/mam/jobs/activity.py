"""What an agent is doing, according to which source, and since when. Pure.

Several sources report a state, and a fixed order decides between them. A dead process wins over everything. The agent's
hooks and its protocol win over the screen. Between two sources of the same rank, the later report wins. Without a
report the state is `unknown`; mam does not guess.
"""

from __future__ import annotations

from mam.errors import MamError
from mam.events.event import PERMISSION_REQUIRED
from mam.jobs.question import first_line, open_questions
from mam.jobs.record import Job
from mam.jobs.status import COMPLETED, RUNNING
from mam.util.clock import Moment, iso_milli, parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.jobs.record import Json

WORKING, ASKS, NEEDS_PERMISSION, QUIET, DONE, UNKNOWN, GONE = (
    "working", "asks", "needs permission", "quiet", "done", "unknown", "gone",
)  # fmt: skip
HOOK, PROTOCOL, PROCESS, SCREEN = "hook", "protocol", "process", "screen"
QUIET_SECONDS = 120
"""An agent that was working is quiet after this long without a sign of life."""

_RANKS = {SCREEN: 1, PROCESS: 0, PROTOCOL: 2, HOOK: 2}


class State(Frozen):
    """The state of an agent, with its source."""

    state: str
    source: str
    at_ms: int
    """When the source saw or reported it; 0 if unknown."""
    why: str = ""

    def to_json(self) -> Json:
        at = iso_milli(self.at_ms) if self.at_ms else None
        return {"state": self.state, "source": self.source, "at": at, "why": self.why}

    def format_at(self, now_ms: int) -> str:
        """`needs permission (hook, 12 s ago)`."""
        since = f", {_ago(now_ms - self.at_ms)} ago" if self.at_ms else ""
        return f"{self.state} ({self.source}{since})"


def decide_state(seen: Iterable[State | None], now_ms: int, quiet_seconds: float = QUIET_SECONDS) -> State:
    """The state that wins. A change on the screen still counts as a sign of life of a working agent."""
    known = [state for state in seen if state is not None]
    dead = next((state for state in known if state.state == GONE and state.source == PROCESS), None)
    if dead is not None:
        return dead
    reported = [state for state in known if state.state != UNKNOWN]
    if not reported:
        return max(known, key=_weight, default=State(state=UNKNOWN, source=PROCESS, at_ms=0, why="no source reports"))
    best = max(reported, key=_weight)
    heard_ms = max(state.at_ms for state in known)
    if best.state == WORKING and now_ms - heard_ms >= quiet_seconds * 1000:
        return best.replace(state=QUIET, at_ms=heard_ms, why=best.why)
    return best


def _weight(state: State) -> tuple[int, int, bool]:
    # Of two reports at the same moment, the one that asks for a person is the safer answer.
    return _RANKS[state.source], state.at_ms, state.state == NEEDS_PERMISSION


def job_state(job: Job, last_event: Json | None, moment: Moment) -> State:
    """What the agent of a job is doing, from its record and the last event of its attempt."""
    if job.status is COMPLETED:
        return State(state=DONE, source=PROTOCOL if job.said else PROCESS, at_ms=_ms(job.ended_at))
    if job.status is not RUNNING:
        at_ms = _ms(job.ended_at or job.updated_at)
        return State(state=UNKNOWN, source=PROCESS, at_ms=at_ms, why=f"it is {job.status}")
    asked = open_questions(job) if job.questions else []
    if asked:
        return State(state=ASKS, source=PROTOCOL, at_ms=_ms(asked[0].asked_at), why=first_line(asked[0].text))
    if job.said is not None:
        return State(state=DONE, source=PROTOCOL, at_ms=_ms(job.said.get("at")), why="it reported its end")
    event = _in_current_attempt(job, last_event)
    claimed = State(state=WORKING, source=PROCESS, at_ms=_ms(job.claimed_at), why="it was claimed")
    if event is None:
        return decide_state([claimed], moment.wall_ms)
    data: Json = event["data"] if isinstance(event.get("data"), dict) else {}
    at_ms, why = _ms(event.get("timestamp")), str(event.get("detail", ""))
    heard_ms = max(at_ms, _ms(job.heard_at))
    if data.get("quiet") is True:
        return State(state=QUIET, source=PROCESS, at_ms=at_ms, why=why)
    if event.get("event") == PERMISSION_REQUIRED and "question" in data:
        why = "its question is closed"  # no question is open
    elif event.get("event") == PERMISSION_REQUIRED:
        return State(state=NEEDS_PERMISSION, source=event_source(data), at_ms=at_ms, why=why)
    source = PROCESS if event.get("event") == "started" else event_source(data)
    quiet = job.idle_timeout_sec or QUIET_SECONDS
    return decide_state([State(state=WORKING, source=source, at_ms=heard_ms, why=why)], moment.wall_ms, quiet)


def event_source(data: Json) -> str:
    """The source that an event names; `claude-code hook` is a hook. An event without a source is the agent's own."""
    source = str(data.get("source", ""))
    if source.endswith(" hook"):
        return HOOK
    return source if source in (PROCESS, SCREEN) else PROTOCOL


def _in_current_attempt(job: Job, event: Json | None) -> Json | None:
    if event is None or "event" not in event:
        return None
    return event if str(event.get("timestamp", "")) >= (job.claimed_at or "") else None


def _ms(text: Any) -> int:
    try:
        return parse_time(text) if isinstance(text, str) else 0
    except (ValueError, MamError):
        return 0


def _ago(milliseconds: int) -> str:
    seconds = max(0, milliseconds) // 1000
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
