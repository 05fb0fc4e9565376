"""Records that another program wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mam.jobs.adopt import KEPT, adopt_known, adopt_new
from mam.jobs.record import Job, parse_job
from mam.jobs.status import Status
from tests.unit.jobs import NOW, in_status, later, pending, running

if TYPE_CHECKING:
    from mam.jobs.adopt import Adoption

NEVER_BY_HAND = {("waiting", "running"), ("waiting", "completed")}
ILLEGAL = [
    (status, to)
    for status in Status
    for to in Status
    if status != to and (status.ended or to is Status.WAITING or (status, to) in NEVER_BY_HAND)
]


def _written(before: Job, without: tuple[str, ...] = (), **changes: Any) -> Adoption:
    """The record as a foreign hand left it: some fields changed, some dropped."""
    fields = {name: value for name, value in {**before.to_json(), **changes}.items() if name not in without}
    return adopt_known(before, parse_job(fields, "x"), frozenset(fields), later(5), new_claim="new")


# -- new ones ------------------------------------------------------------------------------------------------------


def test_a_new_record_is_numbered_and_marked_as_foreign() -> None:
    change = adopt_new(pending().replace(number=0), 17, NOW)

    assert (change.job.number, change.job.status) == (17, "pending")
    assert [(line["event"], line["by"]) for line in change.lines] == [("registered", "foreign")]


def test_a_running_record_without_a_lease_gets_that_of_a_pick() -> None:
    change = adopt_new(running(timeout_sec=90).replace(lease=None), 1, NOW)

    assert change.job.lease is not None
    assert change.job.lease.left_ms(NOW) == 90_000


@pytest.mark.parametrize("status", list(Status))
def test_nothing_else_of_a_new_record_is_changed(status: Status) -> None:
    job = in_status(status)

    assert adopt_new(job, job.number, NOW).job == job


@pytest.mark.parametrize(("status", "claim_id"), [(Status.RUNNING, "new"), (Status.PENDING, None)])
def test_a_file_cannot_set_a_claim_id(status: Status, claim_id: str | None) -> None:
    copied = in_status(status).replace(claim_id="of-the-file")

    assert adopt_new(copied, 1, NOW, "new").job.claim_id == claim_id


def test_the_numbers_of_a_new_record_are_marked_as_imported() -> None:
    change = adopt_new(pending().replace(last_seq=9), 1, NOW)

    assert (change.lines[-1]["event"], change.lines[-1]["seq"], change.lines[-1]["upto"]) == ("imported", 1, 9)


# -- known ones ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", list(Status))
def test_an_equal_record_changes_nothing(status: Status) -> None:
    job = in_status(status)

    adoption = _written(job)

    assert (adoption.change.job, adoption.change.lines, adoption.complaint) == (job, (), None)


def test_fields_of_the_user_are_adopted() -> None:
    changes: dict[str, Any] = {
        "timeout_sec": 60,
        "agent_session": "tmux:codex",
        "expected_artifacts": ["x.md"],
        "priority": 4,
    }

    adoption = _written(pending(), **changes)

    assert {name: getattr(adoption.change.job, name) for name in changes} == changes
    assert adoption.change.lines[0]["event"] == "adopted"
    assert set(changes) <= set(adoption.change.lines[0]["fields"])
    assert adoption.change.job.updated_at == later(5).second


def test_a_prompt_is_taken_over() -> None:
    assert _written(pending(), prompt="sort eleven").change.job.prompt == "sort eleven"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attempt", 9), ("claim_id", "mine"), ("number", 99), ("owner", "thief"), ("losses", 0), ("key", "stolen"),
        ("retry_of", "other"),
        ("created_at", "2020-01-01T00:00:00Z"), ("lease", None), ("ended_attempt", 1), ("retries", 7),
    ],
)  # fmt: skip
def test_fields_that_fence_order_or_name_the_job_are_not_adopted(name: str, value: Any) -> None:
    before = running().replace(losses=1)

    after = _written(before, **{name: value}).change.job

    assert name in KEPT
    assert getattr(after, name) == getattr(before, name)


def test_fields_that_an_old_writer_dropped_are_restored() -> None:
    before = running().replace(unknown={"x_team": "data"}, losses=2)
    own = tuple(name for name in before.to_json() if name in KEPT - {"job_id", "created_at"} or name == "x_team")

    after = _written(before, without=own).change.job

    assert after.replace(updated_at=before.updated_at) == before


def test_unknown_fields_of_both_are_kept() -> None:
    after = _written(pending().replace(unknown={"a": 1, "b": 2}), b=3, c=4).change.job

    assert after.unknown == {"a": 1, "b": 3, "c": 4}


@pytest.mark.parametrize(("found", "after", "marked"), [(5, 5, [(3, 5)]), (2, 2, []), (0, 2, [])])
def test_event_numbers_only_grow(found: int, after: int, marked: list[tuple[int, int]]) -> None:
    adoption = _written(running().replace(last_seq=2), last_seq=found)

    assert adoption.change.job.last_seq == after
    imported = [(line["seq"], line["upto"]) for line in adoption.change.lines if line["event"] == "imported"]
    assert imported == marked


# -- status --------------------------------------------------------------------------------------------------------


def test_a_legal_status_is_the_act_that_means_it() -> None:
    adoption = _written(running(), status="completed")

    assert (adoption.change.job.status, adoption.change.job.lease, adoption.complaint) == ("completed", None, None)
    assert [line["event"] for line in adoption.change.lines] == ["status_changed", "published"]
    assert adoption.change.lines[0]["unfenced"] is True


def test_a_pick_by_an_old_script_is_a_claim_by_hand() -> None:
    job = _written(pending(), status="running", claim_id="of-the-file").change.job

    assert (job.status, job.attempt, job.owner, job.claim_id) == ("running", 1, "manual", "new")
    assert job.lease is not None


def test_an_illegal_status_is_reported_and_the_rest_still_counts() -> None:
    assert len(ILLEGAL) > 10
    for status, to in ILLEGAL:
        before = in_status(status)

        adoption = _written(before, status=str(to), timeout_sec=7)

        assert adoption.change.job.status is status
        assert adoption.change.job.timeout_sec == 7
        assert adoption.complaint is not None
        assert before.job_id in adoption.complaint
        last = adoption.change.lines[-1]
        assert (last["event"], last["from"], last["to"], last["by"]) == ("refused", status, to, "foreign")
