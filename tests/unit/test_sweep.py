"""Expiry of leases and waits, and retries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.jobs.lease import default_lease_seconds, new_lease
from mam.jobs.status import Status
from mam.jobs.sweep import (
    BACKOFF_LIMIT_SECONDS,
    backoff_seconds,
    is_due,
    is_quiet,
    left_ms,
    seconds_until_due,
    settle,
    with_lease,
)
from mam.util.clock import Moment
from tests.unit.jobs import NOW, in_status, later, pending, running

# -- settling ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", list(Status))
def test_only_what_runs_or_waits_becomes_due(status: Status) -> None:
    job = in_status(status)

    assert not is_due(job, NOW)
    assert settle(job, NOW).lines == ()
    assert is_due(job, later(1e6)) == (status in (Status.RUNNING, Status.WAITING))


@pytest.mark.parametrize(("losses", "status"), [(0, "pending"), (1, "pending"), (2, "error"), (3, "error")])
def test_a_job_ends_in_error_after_max_losses(losses: int, status: str) -> None:
    change = settle(running().replace(losses=losses), later(61))

    assert (change.job.status, change.job.losses) == (status, losses + 1)
    assert [line["event"] for line in change.lines][1:] == (["published"] if status == "error" else [])
    if status == "error":
        assert change.job.reason == f"lost {losses + 1} times"


def test_how_often_it_may_be_lost_is_the_jobs_own_choice() -> None:
    assert settle(running().replace(max_losses=1), later(61)).job.status == "error"
    assert settle(running().replace(max_losses=9, losses=7), later(61)).job.status == "pending"


def test_a_wait_that_ends_leaves_no_trace_in_the_record() -> None:
    job = settle(in_status(Status.WAITING), later(60)).job

    assert (job.status, job.waiting_for, job.due_at, job.losses) == ("pending", None, None, 0)


def test_a_wait_without_a_time_is_not_decided_by_time() -> None:
    job = in_status(Status.WAITING).replace(due_at=None, waiting_for="dependency")

    assert left_ms(job, later(1e9)) is None


def test_the_next_decision_is_the_nearest() -> None:
    jobs = [in_status(status) for status in Status]

    assert seconds_until_due(jobs, NOW) == 60
    assert seconds_until_due(jobs, later(59.5)) == 0.5
    assert seconds_until_due(jobs, later(100)) == 0
    assert seconds_until_due([pending()], NOW) is None


# -- leases --------------------------------------------------------------------------------------------------------

MOMENTS = st.builds(Moment, wall_ms=st.integers(0, 10**13), boot_ms=st.integers(0, 10**10), boot_id=st.just("one"))
LENGTHS = st.integers(1, 10**8).map(lambda milliseconds: milliseconds / 1000)


@given(MOMENTS, LENGTHS, st.integers(0, 10**13), st.integers(0, 10**9))
def test_on_the_same_boot_only_the_boot_clock_counts(taken: Moment, seconds: float, wall_ms: int, passed: int) -> None:
    now = taken.replace(wall_ms=wall_ms, boot_ms=taken.boot_ms + passed)

    assert new_lease(seconds, taken).expired(now) == (passed >= round(seconds * 1000))


@given(MOMENTS, LENGTHS, st.integers(-(10**9), 10**9), st.integers(0, 10**10), st.sampled_from(["two", ""]))
def test_on_another_boot_only_the_wall_clock_counts(
    taken: Moment, seconds: float, passed: int, boot_ms: int, boot_id: str
) -> None:
    now = Moment(wall_ms=max(0, taken.wall_ms + passed), boot_ms=boot_ms, boot_id=boot_id)

    assert new_lease(seconds, taken).expired(now) == (now.wall_ms - taken.wall_ms >= round(seconds * 1000))


def test_a_host_without_a_boot_id_uses_the_wall_clock() -> None:
    taken = Moment(wall_ms=1000, boot_ms=5, boot_id="")
    lease = new_lease(1, taken)

    assert lease.boot_ms == 0
    assert lease.left_ms(Moment(wall_ms=1500, boot_ms=999_999, boot_id="")) == 500


def test_a_pick_without_a_timeout_has_a_lease_of_a_day() -> None:
    assert (default_lease_seconds(0), default_lease_seconds(90)) == (86_400, 90)


def test_only_a_running_record_without_a_lease_is_given_one() -> None:
    bare = running(timeout_sec=90).replace(lease=None)
    given_one = with_lease(bare, NOW)

    assert given_one.lease == new_lease(90, NOW)
    assert with_lease(given_one, later(50)) is given_one
    assert with_lease(pending(), NOW).lease is None


# -- back-off ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2000), st.floats(0, 1, exclude_max=True))
def test_back_off_grows_is_jittered_and_bounded(retries: int, chance: float) -> None:
    step = min(BACKOFF_LIMIT_SECONDS, 10.0 * 2.0 ** min(retries, 60))

    assert step / 2 <= backoff_seconds(retries, chance) <= step
    assert backoff_seconds(retries + 1, chance) >= backoff_seconds(retries, chance)


def test_chance_decides_half_of_it() -> None:
    assert [backoff_seconds(1, chance) for chance in (0.0, 0.5)] == [10.0, 15.0]


# -- stalled -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "shown"), [(0, False), (120, False), (121, True), (-500, False)])
def test_a_running_job_is_quiet_after_its_idle_timeout(seconds: float, shown: bool) -> None:
    assert is_quiet(running(), later(seconds)) == shown


def test_a_job_without_idle_timeout_or_not_running_is_never_quiet() -> None:
    assert not any(is_quiet(in_status(status), later(1e6)) for status in Status if status is not Status.RUNNING)
    assert not is_quiet(running(idle_timeout_sec=0), later(1e6))


def test_silence_of_an_old_record_counts_from_its_last_change() -> None:
    assert is_quiet(running().replace(heard_at=None), later(121))
