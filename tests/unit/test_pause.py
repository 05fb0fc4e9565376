"""Pauses: which jobs they cover, and until when."""

from __future__ import annotations

import pytest

from mam.errors import BadInput
from mam.jobs.pause import Pause, blocking_pause, draft_pause, parse_pause, paused_agents, seconds_until_lifted
from tests.unit.jobs import NOW, later, pending


@pytest.mark.parametrize(
    ("pause", "held", "whom"),
    [
        (Pause(), True, "everything"),
        (Pause(agent="codex"), True, "agent codex"),
        (Pause(label="nightly"), True, "label nightly"),
        (Pause(agent="codex", label="nightly"), True, "agent codex and label nightly"),
        (Pause(agent="shell"), False, "agent shell"),
        (Pause(label="codex"), False, "label codex"),
        (Pause(agent="codex", label="other"), False, "agent codex and label other"),
    ],
)
def test_which_jobs_a_pause_covers(pause: Pause, held: bool, whom: str) -> None:
    job = pending(agent="codex", label="nightly")

    assert (blocking_pause([pause], job, NOW) is pause) is held
    assert pause.scope == whom
    assert parse_pause(pause.as_dict()) == pause


def test_which_agents_a_claim_skips() -> None:
    pauses = [Pause(agent="codex"), Pause(agent="shell", label="a"), Pause(label="b")]

    assert paused_agents([], "a", NOW) == frozenset()
    assert paused_agents(pauses, "a", NOW) == frozenset({"codex", "shell"})
    assert paused_agents(pauses, "c", NOW) == frozenset({"codex"})
    assert paused_agents(pauses, "b", NOW) is None
    assert paused_agents([*pauses, Pause()], "c", NOW) is None


def test_a_pause_holds_until_its_end_and_not_at_it() -> None:
    pause = draft_pause("codex", None, NOW.wall_ms + 1000, None, NOW)

    assert pause.is_active(later(0.999))
    assert not pause.is_active(later(1))
    assert seconds_until_lifted([pause, Pause()], later(0.25)) == 0.75
    assert seconds_until_lifted([pause, Pause()], later(2)) is None


def test_the_reported_pause_is_the_one_that_ends_last() -> None:
    soon = draft_pause("codex", None, NOW.wall_ms + 1000, None, NOW)
    job = pending(agent="codex")

    assert blocking_pause([soon, Pause()], job, NOW) == Pause()
    assert blocking_pause([soon], job, NOW) == soon


def test_a_pause_that_is_over_before_it_begins_is_refused() -> None:
    with pytest.raises(BadInput, match="has passed"):
        draft_pause(None, None, NOW.wall_ms, None, NOW)
