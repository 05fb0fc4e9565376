"""The turns of a session, as its hooks tell them. Pure: lines in, what is known out.

Hooks come late, twice, or from a turn that is over; the agent itself can call them. So a turn is known by its name (the
agent's own id of a prompt), an end counts only for the turn that it names, and what is over stays over. A turn that is
mam's is known by the mark in its prompt.
"""

from __future__ import annotations

from mam.jobs.activity import DONE, HOOK, NEEDS_PERMISSION, PROTOCOL, UNKNOWN, WORKING, State
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

MAX_TURNS = 200
"""Turns that are remembered; a hook of an older one is that of nobody."""

REOPEN_MS = 60_000
"""How long after its end a turn may be found to go on."""

_QUESTIONS = ("AskUserQuestion", "ExitPlanMode")
_QUESTION_NOTIFICATIONS = (
    "permission_prompt",
    "agent_needs_input",
    "elicitation_dialog",
    "elicitation_url_dialog",
    "ToolPermission",
)
_ACTIVITY_HOOKS = (
    "PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStart", "SubagentStop", "PreCompact", "PostCompact",
    "TaskCompleted",
)  # fmt: skip


class Turn(Frozen):
    name: str
    mark: str = ""
    began_ms: int = 0
    last_hook_ms: int = 0
    question: str = ""
    """For what it waits: a tool's name, or words; empty while it works."""
    ended_ms: int = 0
    failure: str = ""
    """Why its end is none of success: rate_limit, overloaded, …"""
    text: str | None = None
    """The agent's last message."""
    replaced: bool = False
    """Whether another prompt came before it had ended."""
    ended_by: str = HOOK
    """Who told its end: some ends no hook tells, but the agent's own transcript does (protocol)."""

    @property
    def ended(self) -> bool:
        return bool(self.ended_ms)


class TurnTracker:
    def __init__(self) -> None:
        self._turns: dict[str, Turn] = {}
        self._latest = ""
        self._unnamed = 0
        self.idle_ms = 0
        """When the session was last known to wait for a prompt before any turn began."""
        self.remaining_ms = 0
        """When it said that it ends."""
        self.transcript = ""
        self.cleared_ms = 0
        """When its conversation was begun anew."""

    @property
    def has_hooks(self) -> bool:
        return bool(self._turns or self.idle_ms)

    @property
    def latest(self) -> Turn | None:
        return self._turns.get(self._latest)

    def find_by_mark(self, mark: str) -> Turn | None:
        """The latest turn whose prompt carried this mark."""
        return next((turn for turn in reversed(self._turns.values()) if turn.mark == mark), None)

    def apply(self, line: Json) -> Turn | None:
        """The turn that the line was about, if it told something about one."""
        at_ms, hook = line.get("at_ms"), line.get("hook_event_name")
        if not isinstance(at_ms, int) or not isinstance(hook, str):
            return None
        self.transcript = line.get("transcript_path") or self.transcript
        if hook == "SessionStart":
            self._begin_session(line, at_ms)
            return None
        if hook == "SessionEnd":
            self.remaining_ms = 0 if line.get("reason") in ("clear", "resume") else at_ms
            return None
        if hook == "UserPromptSubmit":
            return self._begin_turn(line, at_ms)
        turn = self._turns.get(line.get("turn") or self._latest)
        if turn is None or (turn.ended and not _continues(turn, hook, line, at_ms)):
            return None
        return self._put(_apply_hook(turn, hook, line, at_ms))

    def state(self, since_ms: int = 0) -> State | None:
        """What the hooks tell of the session; nothing that is older than `since_ms` counts."""
        if self.remaining_ms:
            return State(state=UNKNOWN, source=HOOK, at_ms=self.remaining_ms, why="its session ended")
        turn = self.latest
        if turn is None:
            return State(state=DONE, source=HOOK, at_ms=self.idle_ms, why="no prompt yet") if self.idle_ms else None
        if turn.ended:
            why = f"its turn ended with {turn.failure}" if turn.failure else "its turn ended"
            return State(state=DONE, source=turn.ended_by, at_ms=max(turn.ended_ms, self.idle_ms), why=why)
        if turn.last_hook_ms < since_ms:
            return None
        if turn.question:
            return State(state=NEEDS_PERMISSION, source=HOOK, at_ms=turn.last_hook_ms, why=turn.question)
        return State(state=WORKING, source=HOOK, at_ms=turn.last_hook_ms, why=turn.mark)

    def _begin_session(self, line: Json, at_ms: int) -> None:
        self.remaining_ms = 0
        if line.get("source") in ("startup", "clear", "resume", "fork"):
            self.idle_ms = at_ms
            self.cleared_ms = at_ms if line.get("source") == "clear" else self.cleared_ms
            if (turn := self.latest) is not None and not turn.ended and line.get("source") != "startup":
                self._put(turn.replace(replaced=True, ended_ms=at_ms, failure="cleared"))

    def _begin_turn(self, line: Json, at_ms: int) -> Turn | None:
        name = line.get("turn") or self._new_name()
        if name in self._turns:
            return None  # told again; what is known of it is newer
        before = self.latest
        if before is not None and not before.ended:
            self._put(before.replace(replaced=True))
        self._latest = name
        self.remaining_ms = 0
        while len(self._turns) >= MAX_TURNS:
            del self._turns[next(iter(self._turns))]
        return self._put(Turn(name=name, mark=line.get("mark", ""), began_ms=at_ms, last_hook_ms=at_ms))

    def _new_name(self) -> str:
        self._unnamed += 1
        return f"turn {self._unnamed}"

    def _put(self, turn: Turn) -> Turn:
        self._turns[turn.name] = turn
        return turn


def _continues(turn: Turn, hook: str, line: Json, at_ms: int) -> bool:
    """A hook of the user's own may have refused the end: the same turn then uses a tool again, at once."""
    same = line.get("turn") == turn.name and not turn.failure
    return same and hook == "PreToolUse" and 0 < at_ms - turn.ended_ms < REOPEN_MS


def _apply_hook(turn: Turn, hook: str, line: Json, at_ms: int) -> Turn:
    tool = line.get("tool_name", "")
    updated = turn.replace(last_hook_ms=max(at_ms, turn.last_hook_ms), ended_ms=0)
    if hook == "PermissionRequest" or (hook == "PreToolUse" and tool in _QUESTIONS):
        return updated.replace(question=tool or "a tool")
    if hook == "Elicitation":
        return updated.replace(question="input")
    if hook == "Notification":
        return (
            updated.replace(question=turn.question or "input")
            if line.get("notification_type") in _QUESTION_NOTIFICATIONS
            else turn
        )
    if hook in ("Stop", "StopFailure") and not line.get("inside"):
        if line.get("background"):
            return updated.replace(question="")  # it waits for what it started, and will go on by itself
        failure = (line.get("error") or "unknown") if hook == "StopFailure" else ""
        by = PROTOCOL if line.get("by") == PROTOCOL else HOOK
        return updated.replace(question="", ended_ms=at_ms, ended_by=by, failure=failure, text=line.get("text"))
    return updated.replace(question="") if hook in _ACTIVITY_HOOKS else turn
