"""Jobs after other jobs: the rules alone."""

from __future__ import annotations

import pytest

from mam.errors import BadInput, Refused
from mam.jobs import acts
from mam.jobs.dependency import AFTER_LIMIT, check_after, check_no_cycle, open_dependencies, settle_dependency
from mam.jobs.draft import draft_job, draft_retry
from mam.jobs.record import Job
from mam.jobs.status import Status
from tests.unit.jobs import NOW, in_status, later, pending, running


def after(*ids: str, policy: str = "hold", **choices: object) -> Job:
    """A job that waits for these, none of which has ended."""
    draft = draft_job(
        job_id="last", prompt="p", agent="codex", after=ids, on_dependency_failure=policy, **choices  # type: ignore[arg-type]
    )  # fmt: skip
    return acts.register(draft, 9, NOW, dict.fromkeys(ids, running())).job


@pytest.mark.parametrize(
    ("status", "policy", "becomes"),
    [
        (Status.PENDING, "hold", Status.WAITING),
        (Status.RUNNING, "run", Status.WAITING),
        (Status.WAITING, "cancel", Status.WAITING),
        (Status.COMPLETED, "hold", Status.PENDING),
        (Status.COMPLETED, "cancel", Status.PENDING),
        (Status.ERROR, "hold", Status.WAITING),
        (Status.ERROR, "run", Status.PENDING),
        (Status.ERROR, "cancel", Status.CANCELLED),
        (Status.CANCELLED, "hold", Status.WAITING),
        (Status.CANCELLED, "run", Status.PENDING),
        (Status.CANCELLED, "cancel", Status.CANCELLED),
        (None, "hold", Status.WAITING),
        (None, "run", Status.PENDING),
        (None, "cancel", Status.CANCELLED),
    ],
)
def test_what_the_state_of_one_means_for_the_next(status: Status | None, policy: str, becomes: Status) -> None:
    first = None if status is None else in_status(status)

    settled = settle_dependency(after("first", policy=policy), {"first": first}, NOW)
    assert settled.job.status is becomes
    assert bool(settled.lines) is (becomes is not Status.WAITING)


def test_all_of_them_count() -> None:
    job = after("one", "two", "three")
    done, open_ = in_status(Status.COMPLETED), running()

    assert open_dependencies(job, {"one": done, "two": open_, "three": done}) == ["two"]
    assert settle_dependency(job, {"one": done, "two": open_, "three": done}, NOW).lines == ()
    assert settle_dependency(job, dict.fromkeys(job.after, done), NOW).job.status is Status.PENDING


def test_one_failure_cancels_although_others_are_open() -> None:
    job = after("one", "two", policy="cancel")

    change = settle_dependency(job, {"one": running(), "two": in_status(Status.ERROR)}, NOW)

    assert change.job.status is Status.CANCELLED
    assert change.job.reason == "job two, which it comes after, ended in error"


def test_a_job_that_does_not_wait_for_others_is_left_alone() -> None:
    for job in (pending(), running(), in_status(Status.COMPLETED)):
        assert settle_dependency(job, {}, NOW).lines == ()


def test_a_start_time_that_has_passed_meanwhile_is_no_wait() -> None:
    job = after("one", due_ms=NOW.wall_ms + 5_000)
    done = {"one": in_status(Status.COMPLETED)}

    assert settle_dependency(job, done, later(1)).job.waiting_for == "time"
    assert settle_dependency(job, done, later(6)).job.status is Status.PENDING


def test_each_is_named_once_and_not_too_many() -> None:
    assert check_after("mine", ["b", "a", "b"]) == ["b", "a"]
    with pytest.raises(BadInput, match="after itself"):
        check_after("mine", ["mine"])
    with pytest.raises(BadInput, match="at most"):
        check_after("mine", [f"job{number}" for number in range(AFTER_LIMIT + 1)])


def test_a_circle_is_found_however_long_it_is() -> None:
    chain = {f"j{n}": after(f"j{n + 1}").replace(job_id=f"j{n}") for n in range(50)}
    draft = draft_job(job_id="j50", prompt="p", agent="codex", after=["j0"])
    check_no_cycle(draft.replace(job_id="other"), chain.get)

    with pytest.raises(Refused, match="wait for itself"):
        check_no_cycle(draft, chain.get)


def test_a_circle_among_others_does_not_hold_the_search_up() -> None:
    circle = {"a": after("b").replace(job_id="a"), "b": after("a").replace(job_id="b")}

    check_no_cycle(draft_job(job_id="c", prompt="p", agent="codex", after=["a"]), circle.get)


def test_a_retry_keeps_what_was_chosen() -> None:
    old = after("one", policy="run", exclusive="gpu", workspace="fresh", permissions="full")

    new = draft_retry(old, "new")

    assert (new.after, new.on_dependency_failure, new.exclusive) == (["one"], "run", "gpu")
    assert (new.workspace, new.permissions, new.retry_of) == ("fresh", "full", "last")
