"""Which generation of a session is current, and which jobs return to pending."""

from __future__ import annotations

import pytest

from mam.errors import GenerationLost
from mam.jobs import acts
from mam.jobs.adopt import adopt_new
from mam.jobs.generation import MAX_SUPERSEDED, Generations, release_displaced, supersede
from mam.jobs.record import Job
from mam.jobs.status import Status
from tests.unit.jobs import NOW, in_status, later, pending


def held(agent_id: str = "gpu", generation_id: str = "first") -> Job:
    claimant = {"agent_id": agent_id, "generation_id": generation_id}
    return acts.claim(pending(), NOW, owner="worker", lease_seconds=60, claimant=claimant).job


def test_each_new_one_replaces_the_one_before_it() -> None:
    first = supersede(None, "gpu", "first")
    second = supersede(first, "gpu", "second")
    third = supersede(second, "gpu", "third")

    assert third == Generations(current="third", superseded=("first", "second"))
    assert supersede(third, "gpu", "third") is third


@pytest.mark.parametrize("generation", ["first", "second"])
def test_a_replaced_generation_is_refused_with_its_successor(generation: str) -> None:
    known = Generations(current="third", superseded=("first", "second"))

    with pytest.raises(GenerationLost, match=f"belongs to generation third now; generation {generation} has") as lost:
        supersede(known, "gpu", generation)
    assert lost.value.exit_code == 4


def test_the_last_ones_are_remembered() -> None:
    known = Generations(current="now", superseded=tuple(f"g{number}" for number in range(MAX_SUPERSEDED)))

    new = supersede(known, "gpu", "next")

    assert (len(new.superseded), new.superseded[-1], new.superseded[0]) == (MAX_SUPERSEDED, "now", "g1")


def test_a_job_of_an_older_one_is_pending_again_and_nothing_is_held_against_it() -> None:
    job = held().replace(losses=1, retries=2)

    change = release_displaced(job, "gpu", "second", later(5))

    after = change.job
    assert (after.status, after.owner, after.lease, after.claimant) == (Status.PENDING, None, None, None)
    assert (after.attempt, after.losses, after.retries) == (1, 1, 2)
    assert [(said["event"], said["from"], said["to"], said["by"]) for said in change.lines] == [
        ("status_changed", "running", "pending", "generation")
    ]


@pytest.mark.parametrize(
    "job",
    [
        held(generation_id="second"),
        held(agent_id="another"),
        *(in_status(status) for status in Status),
        acts.release(held(), NOW, attempt=1).job,
    ],
)
def test_any_other_job_stays_as_it_is(job: Job) -> None:
    change = release_displaced(job, "gpu", "second", NOW)

    assert change.job is job
    assert change.lines == ()


def test_a_copied_record_is_held_by_no_session() -> None:
    assert adopt_new(held(), 7, NOW).job.claimant is None
