"""What a waiting process does about the news of a server."""

from __future__ import annotations

import time

import pytest

from mam.stores.interest import (
    FIRST_SECONDS,
    LONGEST_PAUSE_SECONDS,
    NEVER,
    PAUSE_SECONDS,
    Interest,
    News,
    Prospect,
    parse_news,
)

MINE, HELD = "mine", "held0000"


def news(status: str, job_id: str = "other000", label: str = MINE, waiting: int = 1) -> News:
    return News(waiting=waiting, first=0, status=status, job_id=job_id, label=label)


def interest(pause: float = 0.0, *, is_free: bool = True) -> Interest:
    return Interest(
        labels=(MINE,), is_free=lambda: is_free, holds=lambda job_id: job_id == HELD, own_pause=lambda: pause
    )


def heard(*told: tuple[News, bool], by: Interest) -> Prospect:
    prospect = Prospect()
    for one, is_own in told:
        prospect.hear(one, by, is_own=is_own)
    return prospect


def test_a_new_job_is_looked_for_until_others_have_as_many() -> None:
    assert heard((news("pending"), False), by=interest()).looks_at <= time.monotonic()
    assert heard((news("pending"), False), (news("running"), False), by=interest()).looks_at == NEVER
    two = [(news("pending"), False)] * 2
    assert heard(*two, (news("running"), False), by=interest()).looks_at < NEVER


def test_the_first_looks_at_once_and_the_others_leave_the_job_to_it_for_a_while() -> None:
    first, now = Prospect(), time.monotonic()
    first.hear(news("pending", waiting=100), interest(), is_first=True)
    assert first.looks_at <= time.monotonic()
    for waiting, longest in ((2, 2 * PAUSE_SECONDS), (100, FIRST_SECONDS + LONGEST_PAUSE_SECONDS)):
        looks_at = [heard((news("pending", waiting=waiting), False), by=interest()).looks_at for _ in range(50)]
        assert now + min(PAUSE_SECONDS, FIRST_SECONDS) < min(looks_at)
        assert max(looks_at) <= time.monotonic() + longest
        assert len(set(looks_at)) > 1


def test_an_act_that_may_concern_any_label_has_no_first_one() -> None:
    looks_at = [heard((news("lifted", label="", waiting=9), False), by=interest()).looks_at for _ in range(50)]
    assert min(looks_at) < time.monotonic() + 8 * PAUSE_SECONDS / 2


@pytest.mark.parametrize("text", ["", "5", "x 4 pending a b", "5 x pending a b", "5 4 pending a", "end of the test"])
def test_what_another_program_said_is_no_news(text: str) -> None:
    assert parse_news(text) is None


def test_a_label_may_have_spaces_and_may_be_empty() -> None:
    assert parse_news("5 41 pending a b  c") == News(waiting=5, first=41, status="pending", job_id="a", label="b  c")
    assert parse_news("5 41 lifted  ") == News(waiting=5, first=41, status="lifted", job_id="", label="")


def test_other_labels_and_a_full_worker_do_not_look() -> None:
    assert heard((news("pending", label="other"), False), by=interest()).looks_at == NEVER
    assert heard((news("pending"), False), by=interest(is_free=False)).looks_at == NEVER


def test_a_held_job_that_another_process_changed_is_looked_at_whatever_comes_behind() -> None:
    """A claim of another worker says that there is less work, and nothing about the cancelled job."""
    told = [(news("cancelled", HELD), False), (news("running"), False)]
    assert heard(*told, by=interest(pause=60.0)).looks_at == 0.0


def test_what_the_process_did_itself_waits_but_not_for_ever() -> None:
    now = time.monotonic()
    own = [(news("running", HELD), True), (news("running"), True), (news("completed", HELD), True)]
    looks_at = heard(*own, by=interest(pause=60.0)).looks_at
    assert now + 59 < looks_at < now + 120
    assert heard(*own, (news("cancelled", HELD), False), by=interest(pause=60.0)).looks_at == 0.0
    assert heard(*own, by=interest()).looks_at == 0.0


def test_after_a_look_there_is_nothing_to_look_for() -> None:
    prospect = heard((news("pending"), False), (news("cancelled", HELD), False), by=interest())
    prospect.forget()
    assert prospect.looks_at == NEVER
