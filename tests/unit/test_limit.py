"""Usage limits: when to try again, the pause, and the job that met the limit."""

from __future__ import annotations

import pytest

from mam.errors import ClaimLost
from mam.jobs.pause import Pause, blocking_pause, paused_agents, probe_jobs
from mam.jobs.usage_limit import (
    MAX_UNKNOWN_SECONDS,
    PROBE_SECONDS,
    end_of_limit,
    is_probe,
    limit_pause,
    wait_for_reset,
)
from mam.util.clock import iso_milli, parse_time
from tests.unit.jobs import NOW, later, running

SOON = NOW.wall_ms + 60_000


def test_a_known_reset_time_gets_a_margin() -> None:
    assert SOON < end_of_limit(SOON, 5, NOW) <= SOON + 5000


def test_an_end_that_has_passed_is_now() -> None:
    assert NOW.wall_ms < end_of_limit(NOW.wall_ms - 10_000, 0, NOW) <= NOW.wall_ms + 5000


def test_an_unknown_end_is_tried_after_five_minutes_and_then_later_and_later() -> None:
    waits = [(end_of_limit(None, hits, NOW) - NOW.wall_ms) / 1000 for hits in range(12)]
    assert waits[:3] == [300, 600, 1200]
    assert waits[-1] == MAX_UNKNOWN_SECONDS


def test_the_pause_holds_all_but_the_one_and_ends_by_itself() -> None:
    job = running(job_id="tried")
    pause = limit_pause([], job, SOON, "limit", NOW)
    assert pause is not None
    assert pause.until == iso_milli(SOON + round(PROBE_SECONDS * 1000))
    assert blocking_pause([pause], job, NOW) is None
    assert blocking_pause([pause], running(job_id="other"), NOW) == pause
    assert blocking_pause([pause], running(job_id="other"), later(60 + PROBE_SECONDS + 1)) is None
    assert paused_agents([pause], "x", NOW) == frozenset({job.agent})
    assert paused_agents([pause], "x", NOW, "tried") == frozenset()
    assert probe_jobs([pause], "x", NOW) == ["tried"]
    assert probe_jobs([pause], "x", later(60 + PROBE_SECONDS + 1)) == []
    assert is_probe([pause], job)
    assert not is_probe([pause], running(job_id="other"))


@pytest.mark.parametrize(
    "there",
    [
        Pause(agent="claude-code"),
        Pause(agent="claude-code", until=iso_milli(NOW.wall_ms + 1000)),
        Pause(agent="claude-code", until=iso_milli(SOON + 10**9), probe="another"),
    ],
    ids=["for good", "by hand", "a longer limit"],
)
def test_a_stronger_pause_remains(there: Pause) -> None:
    assert limit_pause([there], running(), SOON, "limit", NOW) is None


@pytest.mark.parametrize(
    "there",
    [
        Pause(agent="codex"),
        Pause(label="claude-code"),
        Pause(agent="claude-code", until=iso_milli(NOW.wall_ms - 1)),
        Pause(agent="claude-code", until=iso_milli(SOON), probe="another"),
    ],
    ids=["another agent", "a label", "over", "a shorter limit"],
)
def test_a_weaker_pause_is_replaced(there: Pause) -> None:
    pause = limit_pause([there], running(job_id="mine"), SOON, "limit", NOW)
    assert pause is not None
    assert pause.probe == "mine"


def test_the_job_waits_and_loses_nothing() -> None:
    job = running()
    after = wait_for_reset(job, NOW, attempt=1, until_ms=SOON, reason="usage limit", run={"attempt": 1}).job
    assert (after.status, after.waiting_for, after.retries, after.losses) == ("waiting", "reset", 0, 0)
    assert after.due_at is not None
    assert parse_time(after.due_at) == SOON
    assert after.owner is None


def test_only_the_holder_may_report_a_limit() -> None:
    with pytest.raises(ClaimLost):
        wait_for_reset(running(), NOW, attempt=2, until_ms=SOON, reason="x", run={})
