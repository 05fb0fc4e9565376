"""What a waiting process does about the news of a server."""

from __future__ import annotations

import time

from mam.stores.interest import NEVER, Interest, News, Prospect

MINE, HELD = "mine", "held0000"


def news(status: str, job_id: str = "other000", label: str = MINE, waiting: int = 1) -> News:
    return News(waiting=waiting, status=status, job_id=job_id, label=label)


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
