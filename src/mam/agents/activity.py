"""The current state of a session, combined from its hooks, its process and its screen."""

from __future__ import annotations

import os
import socket

from mam.agents.hook_log import HookReader
from mam.agents.screen_prompts import find_question
from mam.agents.tmux import Tmux
from mam.agents.turns import TurnTracker
from mam.errors import MamError
from mam.jobs.activity import GONE, NEEDS_PERMISSION, PROCESS, SCREEN, UNKNOWN, State, decide_state
from mam.machine.processes import ProcessId, is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.agents.record import AgentRecord

_LATEST_MS = 2**53
_MARKS = ("inside", "background", "notice")
"""Flags: fields whose presence is the information."""


def session_state(record: AgentRecord, now_ms: int, *, check_screen: bool = False) -> State:
    """`check_screen` also reads the screen, which costs one call of tmux."""
    hook_state = read_turns(record).state()
    on_screen = screen_state(record, now_ms) if check_screen and hook_state is None else None
    return decide_state([process_state(record, now_ms), hook_state, on_screen], now_ms)


def read_turns(record: AgentRecord) -> TurnTracker:
    turns = TurnTracker()
    reader = HookReader(session_root_of(record), record.generation_id)
    try:
        for line in reader.lines():
            if (fields := parse_hook_line(line)) is not None:
                turns.apply(fields)
    except OSError:
        pass  # an unreadable log counts as no hooks
    finally:
        reader.close()
    return turns


def process_state(record: AgentRecord, now_ms: int) -> State | None:
    """None for a session on another host: its process cannot be checked from here."""
    process = ProcessId.from_json(record.mam.process)
    if process is None or record.mam.host != socket.gethostname():
        return None
    if is_alive(process):
        return State(state=UNKNOWN, source=PROCESS, at_ms=now_ms, why="it runs; no hook or screen shows more")
    return State(state=GONE, source=PROCESS, at_ms=now_ms, why="its program has ended")


def screen_state(record: AgentRecord, now_ms: int) -> State | None:
    try:
        screen = Tmux(record.mam.socket).run("capture-pane", "-p", "-t", record.mam.pane)
    except MamError:
        return None
    return state_from_screen(screen, now_ms)


def state_from_screen(screen: str, at_ms: int) -> State | None:
    """A screen can show that the agent asks. A screen without a question shows nothing."""
    question = find_question(screen)
    if question is None:
        return None
    return State(state=NEEDS_PERMISSION, source=SCREEN, at_ms=at_ms, why=question[:120])


def session_root_of(record: AgentRecord) -> str:
    return record.runtime.session_root or os.path.dirname(record.runtime.manifest_path)


def parse_hook_line(line: bytes) -> dict[str, Any] | None:
    """One line of the hook log; None for a line that mam did not write. The agent can write there, so field types are
    checked."""
    from mam.util.notices import storable_text
    from mam.util.strict_json import safe_json

    try:
        found = safe_json(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or not all(_is_kind(name, value) for name, value in found.items()):
        return None
    return {name: storable_text(value) if isinstance(value, str) else value for name, value in found.items()}


def _is_kind(name: str, value: object) -> bool:
    if name == "at_ms":
        return type(value) is int and 0 <= value <= _LATEST_MS
    return name in _MARKS or value is None or isinstance(value, str)
