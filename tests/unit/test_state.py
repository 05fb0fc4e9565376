"""Which of several reported states of an agent wins."""

from __future__ import annotations

from typing import Any

import pytest

from mam.jobs.activity import (
    DONE,
    GONE,
    HOOK,
    NEEDS_PERMISSION,
    PROCESS,
    PROTOCOL,
    QUIET,
    SCREEN,
    UNKNOWN,
    WORKING,
    State,
    decide_state,
    job_state,
)  # fmt: skip
from mam.jobs.status import Status
from mam.util.clock import Moment, iso_second
from tests.unit.jobs import NOW as MOMENT
from tests.unit.jobs import in_status, running

NOW = MOMENT.wall_ms


def seen(state: str, source: str, seconds_ago: float = 1.0) -> State:
    return State(state=state, source=source, at_ms=NOW - round(seconds_ago * 1000))


CASES = {
    "nothing at all": ([], (UNKNOWN, PROCESS)),
    "it runs, nothing tells": ([seen(UNKNOWN, PROCESS)], (UNKNOWN, PROCESS)),
    "a hook alone": ([seen(WORKING, HOOK)], (WORKING, HOOK)),
    "a hook beats a newer screen": ([seen(WORKING, HOOK, 9), seen(NEEDS_PERMISSION, SCREEN, 0)], (WORKING, HOOK)),
    "a protocol beats a newer screen": ([seen(DONE, PROTOCOL, 9), seen(WORKING, SCREEN, 0)], (DONE, PROTOCOL)),
    "of hook and protocol the later": ([seen(WORKING, HOOK, 9), seen(DONE, PROTOCOL, 3)], (DONE, PROTOCOL)),
    "and the other way round": ([seen(WORKING, PROTOCOL, 9), seen(NEEDS_PERMISSION, HOOK, 3)], (NEEDS_PERMISSION, HOOK)),  # noqa: E501
    "at the same moment the needy one": (
        [seen(NEEDS_PERMISSION, HOOK, 3), seen(WORKING, PROTOCOL, 3)], (NEEDS_PERMISSION, HOOK),
    ),
    "a screen is better than nothing": ([seen(UNKNOWN, PROCESS, 0), seen(NEEDS_PERMISSION, SCREEN)],
                                        (NEEDS_PERMISSION, SCREEN)),
    "death beats every word": (
        [seen(GONE, PROCESS, 30), seen(WORKING, HOOK, 0), seen(DONE, PROTOCOL, 0), seen(WORKING, SCREEN, 0)],
        (GONE, PROCESS),
    ),
    "what a screen calls dead is not": ([seen(GONE, SCREEN, 0), seen(WORKING, HOOK, 5)], (WORKING, HOOK)),
    "silence": ([seen(WORKING, HOOK, 300)], (QUIET, HOOK)),
    "a screen that moves breaks the silence": ([seen(WORKING, HOOK, 300), seen(WORKING, SCREEN, 2)], (WORKING, HOOK)),
    "who asks is not silent": ([seen(NEEDS_PERMISSION, HOOK, 9000)], (NEEDS_PERMISSION, HOOK)),
    "who is done is not silent": ([seen(DONE, HOOK, 9000)], (DONE, HOOK)),
    "a source that is not there": ([None, seen(DONE, HOOK)], (DONE, HOOK)),
}  # fmt: skip


@pytest.mark.parametrize(("states", "expected"), CASES.values(), ids=CASES)
def test_one_state_wins(states: list[State | None], expected: tuple[str, str]) -> None:
    found = decide_state(states, NOW)
    assert (found.state, found.source) == expected
    found = decide_state(list(reversed(states)), NOW)
    assert (found.state, found.source) == expected


def test_how_a_state_is_formatted() -> None:
    state = State(state=NEEDS_PERMISSION, source=HOOK, at_ms=NOW - 12_400, why="Write")
    assert state.format_at(NOW) == "needs permission (hook, 12 s ago)"
    assert state.format_at(NOW + 7_200_000) == "needs permission (hook, 2 h ago)"
    assert State(state=UNKNOWN, source=PROCESS, at_ms=0).format_at(NOW) == "unknown (process)"
    assert state.to_json() == {
        "state": "needs permission", "source": "hook", "at": "2025-12-31T23:59:47.600Z", "why": "Write"
    }  # fmt: skip


HOOK_DATA = {"source": "claude-code hook"}
RUNNING: list[tuple[dict[str, Any] | None, tuple[str, str]]] = [
    (None, (WORKING, PROCESS)),
    ({"event": "started"}, (WORKING, PROCESS)),
    ({"event": "progress"}, (WORKING, PROTOCOL)),
    ({"event": "progress", "data": HOOK_DATA}, (WORKING, HOOK)),
    ({"event": "permission_required", "data": HOOK_DATA}, (NEEDS_PERMISSION, HOOK)),
    ({"event": "permission_required", "data": {"source": "screen"}}, (NEEDS_PERMISSION, SCREEN)),
    ({"event": "permission_required"}, (NEEDS_PERMISSION, PROTOCOL)),
    ({"event": "progress", "data": {"quiet": True}}, (QUIET, PROCESS)),
    ({"event": "permission_required", "timestamp": "2001-01-01T00:00:00Z"}, (WORKING, PROCESS)),
    ({"event": "progress", "data": "nonsense"}, (WORKING, PROTOCOL)),
]


@pytest.mark.parametrize(("event", "expected"), RUNNING)
def test_the_state_of_a_running_job_comes_from_the_last_event_of_its_attempt(
    event: dict[str, Any] | None, expected: tuple[str, str]
) -> None:
    now = iso_second(NOW)
    told = event and {"timestamp": now, "detail": "", **event}

    state = job_state(running(), told, Moment(wall_ms=NOW + 5000))

    assert (state.state, state.source) == expected


def test_reported_outcomes_and_ended_jobs() -> None:
    said = job_state(running().replace(said={"status": "completed", "at": iso_second(NOW)}), None, MOMENT)
    assert (said.state, said.source) == (DONE, PROTOCOL)
    assert job_state(in_status(Status.COMPLETED), None, MOMENT).state == DONE
    assert job_state(in_status(Status.PENDING), None, MOMENT).state == UNKNOWN
