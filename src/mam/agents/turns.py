"""The turns of a session, derived from its hooks. Pure: log lines in, state out.

Hooks arrive late, twice or after their turn, and the agent itself can call them. So a turn is identified by its name
(the agent's id of a prompt), an end applies only to the turn that it names, and an ended turn stays ended. The mark in
a prompt identifies a turn that mam started.
"""

from __future__ import annotations

from mam.jobs.activity import DONE, HOOK, NEEDS_PERMISSION, PROTOCOL, UNKNOWN, WORKING, State
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

MAX_TURNS = 200
"""How many turns are kept; hooks of older turns are ignored."""

REOPEN_MS = 60_000
"""How long after its end a turn can turn out to continue."""

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
    """The tool or the input that the turn waits for; empty while it works."""
    ended_ms: int = 0
    failure: str = ""
    """Why the turn failed: rate_limit, overloaded, …"""
    text: str | None = None
    """The agent's last message."""
    replaced: bool = False
    """Whether another prompt arrived before this turn had ended."""
    ended_by: str = HOOK
    """The source of the end: a hook, or the agent's transcript (protocol) for an end without a hook."""
    waits: bool = False
    """Whether the agent stopped, and will continue when its background task has ended."""
    continued_as: tuple[str, ...] = ()
    """The names of the prompts by which the agent told itself that a background task has ended."""
    usage: str = ""
    """What the turn took, if the hook that ended it reports that."""

    @property
    def ended(self) -> bool:
        return bool(self.ended_ms)


class TurnTracker:
    def __init__(self) -> None:
        self._turns: dict[str, Turn] = {}
        self._first_names: dict[str, str] = {}
        """The name of the turn that each later prompt of the agent itself continues."""
        self._latest = ""
        self._unnamed = 0
        self.idle_ms = 0
        """When the session last waited for a prompt without any turn before."""
        self.session_ended_ms = 0
        """When the session reported its end."""
        self.transcript = ""
        self.cleared_ms = 0
        """When the conversation was cleared."""

    @property
    def has_hooks(self) -> bool:
        return bool(self._turns or self.idle_ms)

    @property
    def latest(self) -> Turn | None:
        return self._turns.get(self._latest)

    def find_by_mark(self, mark: str) -> Turn | None:
        """The latest turn whose prompt contains this mark."""
        return next((turn for turn in reversed(self._turns.values()) if turn.mark == mark), None)

    def apply(self, line: Json) -> Turn | None:
        """Apply one log line and return the turn that it changed, if any."""
        at_ms, hook = line.get("at_ms"), line.get("hook_event_name")
        if not isinstance(at_ms, int) or not isinstance(hook, str):
            return None
        self.transcript = line.get("transcript_path") or self.transcript
        if hook == "SessionStart":
            self._begin_session(line, at_ms)
            return None
        if hook == "SessionEnd":
            self._end_session(line, at_ms)
            return None
        if hook == "UserPromptSubmit":
            return self._begin_turn(line, at_ms)
        name = line.get("turn") or self._latest
        turn = self._turns.get(self._first_names.get(name, name))
        if turn is None or (turn.ended and not _continues(turn, hook, line, at_ms)):
            return None
        return self._put(_apply_hook(turn, hook, line, at_ms))

    def state(self, since_ms: int = 0) -> State | None:
        """The state that the hooks report; a running turn without a hook since `since_ms` is unknown (None)."""
        if self.session_ended_ms:
            return State(state=UNKNOWN, source=HOOK, at_ms=self.session_ended_ms, why="its session ended")
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

    def _end_session(self, line: Json, at_ms: int) -> None:
        """Codex gives no reason, and begins its next session only with the next prompt. If the program has ended too,
        its process shows it."""
        goes_on = line.get("agent") == "codex" or line.get("reason") in ("clear", "resume")
        self.session_ended_ms = 0 if goes_on else at_ms
        if line.get("agent") == "codex":
            self.idle_ms = at_ms

    def _begin_session(self, line: Json, at_ms: int) -> None:
        self.session_ended_ms = 0
        if line.get("source") in ("startup", "clear", "resume", "fork"):
            self.idle_ms = at_ms
            self.cleared_ms = at_ms if line.get("source") == "clear" else self.cleared_ms
            if (turn := self.latest) is not None and not turn.ended and line.get("source") != "startup":
                self._put(turn.replace(replaced=True, ended_ms=at_ms, failure="cleared"))

    def _begin_turn(self, line: Json, at_ms: int) -> Turn | None:
        name = line.get("turn") or self._new_name()
        if name in self._turns or name in self._first_names:
            return None  # a repeated hook; the known turn is newer
        before = self.latest
        if before is not None and before.waits and line.get("notice"):
            return self._continue_turn(before, name, at_ms)
        if before is not None and not before.ended:
            self._put(before.replace(replaced=True))
        self._latest = name
        self.session_ended_ms = 0
        while len(self._turns) >= MAX_TURNS:
            del self._turns[next(iter(self._turns))]
        return self._put(Turn(name=name, mark=line.get("mark", ""), began_ms=at_ms, last_hook_ms=at_ms))

    def _continue_turn(self, turn: Turn, name: str, at_ms: int) -> Turn:
        if len(self._first_names) >= MAX_TURNS:
            del self._first_names[next(iter(self._first_names))]
        self._first_names[name] = turn.name
        return self._put(turn.replace(waits=False, last_hook_ms=at_ms, continued_as=(*turn.continued_as, name)))

    def _new_name(self) -> str:
        self._unnamed += 1
        return f"turn {self._unnamed}"

    def _put(self, turn: Turn) -> Turn:
        self._turns[turn.name] = turn
        return turn


def _continues(turn: Turn, hook: str, line: Json, at_ms: int) -> bool:
    """A hook of the user can reject the end of a turn: the same turn then uses a tool again shortly after."""
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
            return updated.replace(question="", waits=True)
        failure = (line.get("error") or "unknown") if hook == "StopFailure" else ""
        by = PROTOCOL if line.get("by") == PROTOCOL else HOOK
        about = {"failure": failure, "text": line.get("text"), "usage": line.get("usage") or ""}
        return updated.replace(question="", waits=False, ended_ms=at_ms, ended_by=by, **about)
    return updated.replace(question="") if hook in _ACTIVITY_HOOKS else turn
