"""Turns from hooks: each row has the lines in order, and the resulting state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mam.agents.hook_events import TEXT_LIMIT, find_mark, log_line
from mam.agents.turns import MAX_TURNS, TurnTracker

LIVE = Path(__file__).parents[1] / "live"
START = {"hook_event_name": "SessionStart", "source": "startup"}


def prompt(turn: str, mark: str = "") -> dict[str, Any]:
    return {"hook_event_name": "UserPromptSubmit", "turn": turn, "mark": mark}


def hook(name: str, turn: str = "a", **fields: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "turn": turn, **fields}


STATES: dict[str, tuple[list[dict[str, Any]], str | None]] = {
    "nothing": ([], None),
    "at its prompt": ([START], "done"),
    "a prompt": ([START, prompt("a")], "working"),
    "asks": ([prompt("a"), hook("PermissionRequest", tool_name="Write")], "needs permission"),
    "asks a question": ([prompt("a"), hook("PreToolUse", tool_name="AskUserQuestion")], "needs permission"),
    "asks, later": ([prompt("a"), hook("Notification", notification_type="permission_prompt")], "needs permission"),
    "a notice of nothing": ([prompt("a"), hook("Notification", notification_type="auth_success")], "working"),
    "was allowed": ([prompt("a"), hook("PermissionRequest"), hook("PostToolUse")], "working"),
    "refused, goes on": ([prompt("a"), hook("PermissionRequest"), hook("PreToolUse", tool_name="Read")], "working"),
    "was refused and ended": ([prompt("a"), hook("PermissionRequest"), hook("Stop")], "done"),
    "ended": ([prompt("a"), hook("Stop")], "done"),
    "the notice comes after the end": (
        [prompt("a"), hook("Stop"), hook("Notification", notification_type="permission_prompt")], "done",
    ),
    "failed": ([prompt("a"), hook("StopFailure", error="rate_limit")], "done"),
    "waits for what it started": ([prompt("a"), hook("Stop", background=True)], "working"),
    "goes on when that has ended": (
        [prompt("a"), hook("Stop", background=True), {**prompt("b"), "notice": True}], "working",
    ),
    "and ends then": (
        [prompt("a"), hook("Stop", background=True), {**prompt("b"), "notice": True}, hook("Stop", "b")], "done",
    ),
    "a subagent's end": ([prompt("a"), hook("Stop", inside=True)], "working"),
    "another turn's end": ([prompt("a"), hook("Stop", "b")], "working"),
    "a late end": ([prompt("a"), hook("Stop"), prompt("b"), hook("Stop")], "working"),
    "a late end of one that was broken off": ([prompt("a"), prompt("b"), hook("Stop", "a")], "working"),
    "a prompt told again": ([prompt("a"), hook("Stop"), prompt("a")], "done"),
    "a tool told again": ([prompt("a"), hook("Stop"), hook("PostToolUse")], "done"),
    "its end was refused": ([prompt("a"), hook("Stop"), hook("PreToolUse", tool_name="Bash")], "working"),
    "no names at all": ([prompt(""), hook("PostToolUse", ""), hook("Stop", "")], "done"),
    "no names, two turns": ([prompt(""), hook("Stop", ""), prompt("")], "working"),
    "it left": ([prompt("a"), hook("SessionEnd", reason="prompt_input_exit")], "unknown"),
    "it was cleared": ([prompt("a"), hook("SessionEnd", reason="clear"),
                        {"hook_event_name": "SessionStart", "source": "clear"}], "done"),
    "compacted in the middle": ([prompt("a"), {"hook_event_name": "SessionStart", "source": "compact"}], "working"),
    "its transcript told the end": ([prompt("a"), hook("StopFailure", error="overloaded", by="protocol")], "done"),
    "nonsense": ([{"hook_event_name": 7}, {"x": 1}, prompt("a")], "working"),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), STATES.values(), ids=STATES)
def test_what_the_hooks_report(lines: list[dict[str, Any]], expected: str | None) -> None:
    turns = taken(lines)
    state = turns.state()
    assert (state and state.state) == expected


def taken(lines: list[dict[str, Any]]) -> TurnTracker:
    turns = TurnTracker()
    for number, line in enumerate(lines):
        turns.apply({"at_ms": 1000 + number, **line})
    return turns


def test_a_notice_of_a_background_task_belongs_to_the_turn_that_waits_for_it() -> None:
    notice = {**prompt("b"), "notice": True}
    turns = taken([prompt("a", "job.1"), hook("Stop", background=True), notice, notice, hook("Stop", "b", text="ours")])
    turn = turns.find_by_mark("job.1")
    assert turn is not None
    assert (turn.name, turn.ended, turn.text, turn.replaced) == ("a", True, "ours", False)
    assert turn.continued_as == ("b",)


@pytest.mark.parametrize("between", [hook("Stop"), hook("PreToolUse", tool_name="Bash")])
def test_a_notice_after_the_end_or_in_the_middle_of_a_turn_begins_another(between: dict[str, Any]) -> None:
    turns = taken([prompt("a", "job.1"), between, {**prompt("b"), "notice": True}, hook("Stop", "b", text="theirs")])
    turn = turns.find_by_mark("job.1")
    assert turn is not None
    assert (turn.text, turn.continued_as) == (None, ())


def test_a_marked_turn_is_known_again_and_keeps_its_own_end() -> None:
    turns = taken([prompt("a", "job.1"), prompt("b"), hook("Stop", "b", text="theirs"), hook("Stop", "a", text="ours")])
    turn = turns.find_by_mark("job.1")
    assert turn is not None
    assert (turn.ended, turn.text, turn.replaced) == (True, "ours", True)
    assert turns.find_by_mark("job.2") is None


def test_a_failure_is_reported_and_old_turns_are_dropped() -> None:
    turns = taken([prompt(str(number)) for number in range(MAX_TURNS + 50)])
    turns.apply({"at_ms": 9999, **hook("StopFailure", str(MAX_TURNS + 49), error="overloaded")})
    assert turns.latest is not None
    assert turns.latest.failure == "overloaded"
    assert turns.apply({"at_ms": 9999, **hook("Stop", "0")}) is None


def test_after_an_interruption_earlier_lines_do_not_count() -> None:
    turns = taken([prompt("a")])
    assert turns.state(since_ms=2000) is None
    turns.apply({"at_ms": 3000, **prompt("b")})
    assert (state := turns.state(since_ms=2000)) is not None
    assert state.state == "working"


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_what_the_real_agents_gave_to_their_hooks_is_understood(agent: str) -> None:
    turns = TurnTracker()
    states: list[tuple[str, str | None]] = []
    for recorded in (LIVE / f"{agent}-hooks.jsonl").read_text("utf-8").splitlines():
        given = json.loads(recorded)["stdin"]
        line = log_line(agent, given, len(states) + 1)
        assert "prompt" not in line
        assert "tool_input" not in line
        turns.apply(line)
        states.append((line["hook_event_name"], getattr(turns.state(), "state", None)))
    assert states[:2] == [("SessionStart", "done"), ("UserPromptSubmit", "working")]
    assert ("Stop", "done") in states
    assert turns.latest is not None
    assert turns.latest.text
    if agent == "claude":
        assert ("PermissionRequest", "needs permission") in states


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("Read x and do what it says. (mam:abc.1)", "abc.1"),
        ("(mam:old.1) typed before (mam:new.2)", "new.2"),
        ("(mam:)", ""),
        ("(mam:a b.1)", ""),
        ("(mam:" + "x" * 500 + ")", ""),
        ("no mark", ""),
        (None, ""),
        (["(mam:abc.1)"], ""),
    ],
)
def test_the_mark_in_a_prompt(text: object, mark: str) -> None:
    assert find_mark(text) == mark


def test_a_long_last_message_keeps_its_end() -> None:
    line = log_line("codex", {"hook_event_name": "Stop", "last_assistant_message": "x" * 10**6 + "end"}, 1)
    assert line["text"].endswith("end")
    assert len(line["text"].encode()) <= TEXT_LIMIT


def test_codex_waits_for_a_prompt_after_its_conversation_was_cleared() -> None:
    """It reports the end of the session without a reason, and begins the next one only with the next prompt."""
    turns = TurnTracker()
    turns.apply({"at_ms": 1, "agent": "codex", "hook_event_name": "UserPromptSubmit", "turn": "a"})
    turns.apply({"at_ms": 2, "agent": "codex", "hook_event_name": "Stop", "turn": "a"})
    turns.apply({"at_ms": 3, "agent": "codex", "hook_event_name": "SessionEnd"})

    state = turns.state()

    assert state is not None
    assert (state.state, state.at_ms) == ("done", 3)
