"""A store acts on a job as it left it without reading it again, and never on one that has changed meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import ClaimLost
from mam.jobs.status import COMPLETED, PENDING, RUNNING

if TYPE_CHECKING:
    from mam.registry import Registry
    from mam.stores.port import Entry
    from tests.sqlite.conftest import Place

LABEL = "many"


def claimed(registry: Registry, job_id: str = "one") -> int:
    """The attempt; the store knows the job from now on."""
    registry.register(prompt="x", agent="shell", label=LABEL, job_id=job_id)
    job = registry.pick(LABEL, owner="me")
    assert job is not None
    assert job.job_id == job_id
    return job.attempt


def entries(registry: Registry, job_id: str = "one") -> list[Entry]:
    return [entry for entry in registry.store.entries(None) if entry.job_id == job_id]


def told(registry: Registry, job_id: str = "one") -> list[str]:
    return [event["event"] for event in registry.store.events(job_id)]


def test_an_end_after_somebody_elses_word_is_told_once_and_behind_it(place: Place) -> None:
    mine, others = place.open(), place.open()
    attempt = claimed(mine)
    others.publish("one", event="progress", detail="half")
    before = len(entries(mine))
    job = mine.complete("one", attempt=attempt)
    assert (job.status, job.last_seq, len(entries(mine)) - before) == (COMPLETED, 2, 1)
    assert told(mine) == ["progress", "completed"]


def test_a_word_after_somebody_elses_is_told_once_and_behind_it(place: Place) -> None:
    mine, others = place.open(), place.open()
    attempt = claimed(mine)
    others.publish("one", event="permission_required")
    before = len(entries(mine))
    job = mine.publish("one", event="progress", attempt=attempt)
    assert (job.status, job.last_seq, len(entries(mine)) - before) == (RUNNING, 2, 1)
    assert told(mine) == ["permission_required", "progress"]


def test_two_words_and_an_end_of_the_same_store_are_one_chain(place: Place) -> None:
    mine = place.open()
    attempt = claimed(mine)
    mine.publish("one", event="progress", attempt=attempt)
    mine.publish("one", event="permission_required", attempt=attempt)
    mine.complete("one", attempt=attempt)
    assert told(mine) == ["progress", "permission_required", "completed"]


def test_an_end_of_a_lost_claim_is_refused_and_leaves_nothing(place: Place) -> None:
    mine, others = place.open(), place.open()
    attempt = claimed(mine)
    others.release("one")
    before = entries(mine)
    with pytest.raises(ClaimLost):
        mine.complete("one", attempt=attempt)
    assert (mine.get("one").status, entries(mine)) == (PENDING, before)


def test_an_end_that_somebody_waits_for_since_then_is_noted(place: Place) -> None:
    mine, others = place.open(), place.open()
    attempt = claimed(mine)
    others.register(prompt="x", agent="shell", label=LABEL, job_id="two", after=["one"])
    before = len(entries(mine))
    mine.complete("one", attempt=attempt)
    assert len(entries(mine)) == before + 1
    assert others.pick(LABEL, owner="me") == others.get("two")
    assert others.get("two").status is RUNNING


def test_a_job_that_was_removed_meanwhile_takes_nothing_with_it(place: Place) -> None:
    """The last entry of the journal is another job's, and stays."""
    mine, others = place.open(), place.open()
    attempt = claimed(mine)
    mine.publish("one", event="progress", attempt=attempt)
    others.cancel("one")
    others.register(prompt="x", agent="shell", label="others", job_id="last")
    assert others.archive(["one"]) == ["one"]
    before = [entry.number for entry in others.store.entries(None)]
    with pytest.raises(Exception, match="archived"):
        mine.complete("one", attempt=attempt)
    assert [entry.number for entry in others.store.entries(None)] == before
