"""Jobs that come after other jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import BadInput, Refused, UnknownJob
from mam.jobs.change import Change, audit_record
from mam.jobs.status import Status
from mam.jobs.sweep import SWEEP_LIMIT
from mam.stores.port import ClaimRequest
from mam.testing.conformance.base import (
    StoreCase,
    check_journal,
    pick_id,
    register_and_claim,
    register_jobs,
    snapshot,
    terminal_events,
    transitions_of,
)
from mam.testing.tasks import LABEL

if TYPE_CHECKING:
    from mam.registry import Registry
    from mam.stores.port import Act, Store
    from mam.testing.clock import FakeClock


def ended(registry: Registry, job_id: str, status: str) -> None:
    if status == "error":
        registry.fail(job_id, reason="broken")
    else:
        registry.cancel(job_id)


class Dependencies(StoreCase):
    def test_a_job_waits_until_all_before_it_have_completed(self, registry: Registry, store: Store) -> None:
        first, second = register_jobs(registry, 2, label="before")
        (last,) = register_jobs(registry, after=[first, second])
        assert (registry.get(last).status, registry.get(last).waiting_for) == (Status.WAITING, "dependency")

        registry.complete(first)
        assert pick_id(registry) is None
        registry.complete(second)

        assert pick_id(registry) == last
        assert transitions_of(store, last) == [("waiting", "pending"), ("pending", "running")]
        check_journal(store)

    def test_a_job_after_completed_ones_may_be_claimed_at_once(self, registry: Registry) -> None:
        (first,) = register_jobs(registry, label="before")
        registry.complete(first)
        (last,) = register_jobs(registry, after=[first])

        assert registry.get(last).status is Status.PENDING
        assert pick_id(registry) == last

    @pytest.mark.parametrize(("how", "when"), [("error", "before"), ("error", "later"), ("cancelled", "later")])
    @pytest.mark.parametrize(
        ("policy", "status"), [("hold", Status.WAITING), ("run", Status.PENDING), ("cancel", Status.CANCELLED)]
    )
    def test_a_failure_before_it_holds_it_lets_it_run_or_takes_it_along(
        self, registry: Registry, store: Store, how: str, when: str, policy: str, status: Status
    ) -> None:
        (first,) = register_jobs(registry, label="before")
        if when == "before":
            ended(registry, first, how)
        (last,) = register_jobs(registry, after=[first], on_dependency_failure=policy)
        if when == "later":
            ended(registry, first, how)
        registry.sweep()

        job = registry.get(last)
        assert job.status is status
        if status is Status.CANCELLED:
            assert first in (job.reason or "")
            assert terminal_events(store, last) == [("error", "cancelled")]
        check_journal(store)

    def test_a_retry_takes_the_place_of_the_job_that_failed(self, registry: Registry) -> None:
        (first,) = register_jobs(registry, label="before")
        (last,) = register_jobs(registry, after=[first])
        registry.fail(first, reason="broken")
        registry.sweep()
        again = registry.retry(first).job.job_id
        registry.fail(again, reason="broken again")
        third = registry.retry(again).job.job_id
        registry.sweep()
        assert registry.get(last).status is Status.WAITING
        (latest,) = register_jobs(registry, after=[first])

        registry.complete(third)

        assert {pick_id(registry), pick_id(registry)} == {last, latest}
        newest = registry.store.newest(first)
        assert newest is not None
        assert newest.job_id == third

    def test_the_start_time_counts_too(self, registry: Registry, clock: FakeClock) -> None:
        (first,) = register_jobs(registry, label="before")
        (last,) = register_jobs(registry, after=[first], due_ms=clock.now().wall_ms + 60_000)
        registry.complete(first)
        registry.sweep()
        assert (registry.get(last).status, registry.get(last).waiting_for) == (Status.WAITING, "time")
        assert pick_id(registry) is None

        clock.advance(61)

        assert pick_id(registry) == last

    def test_the_start_time_alone_does_not_let_it_begin(self, registry: Registry, clock: FakeClock) -> None:
        (first,) = register_jobs(registry, label="before")
        (last,) = register_jobs(registry, after=[first], due_ms=clock.now().wall_ms + 60_000)
        clock.advance(61)
        assert pick_id(registry) is None

        registry.complete(first)

        assert pick_id(registry) == last

    def test_a_chain_runs_link_by_link(self, registry: Registry) -> None:
        chain = register_jobs(registry)
        for _ in range(5):
            chain += register_jobs(registry, after=[chain[-1]])

        order = []
        while (job_id := pick_id(registry)) is not None:
            assert pick_id(registry) is None
            order.append(job_id)
            registry.complete(job_id)

        assert order == chain

    def test_many_may_wait_for_one_and_none_is_forgotten(self, registry: Registry, store: Store) -> None:
        (first,) = register_jobs(registry, label="before")
        many = register_jobs(registry, 3 * SWEEP_LIMIT + 1, after=[first])
        registry.complete(first)
        assert store.due_in() == 0

        assert [pick_id(registry) for _ in many] == many
        assert pick_id(registry) is None

    def test_one_of_another_label_behind_many_is_found_by_one_pick(self, registry: Registry) -> None:
        (first,) = register_jobs(registry, label="before")
        register_jobs(registry, 2 * SWEEP_LIMIT, after=[first], label="others")
        (mine,) = register_jobs(registry, after=[first])
        registry.complete(first)

        assert pick_id(registry) == mine

    @pytest.mark.parametrize("way", ["cancel", "set pending", "set error"])
    def test_it_can_leave_its_wait_by_hand(self, registry: Registry, store: Store, way: str) -> None:
        (first,) = register_jobs(registry, label="before")
        (last,) = register_jobs(registry, after=[first])
        if way == "cancel":
            registry.cancel(last)
        else:
            registry.set_status(last, Status(way.removeprefix("set ")))
        status = registry.get(last).status

        registry.complete(first)
        registry.sweep()

        assert registry.get(last).status is status
        check_journal(store)

    def test_a_job_that_is_not_there_cannot_come_first(self, registry: Registry, store: Store) -> None:
        before = snapshot(store)

        with pytest.raises(UnknownJob):
            register_jobs(registry, after=["missing"])

        assert snapshot(store) == before

    def test_a_job_cannot_come_after_itself(self, registry: Registry, store: Store) -> None:
        (first,) = register_jobs(registry, job_id="mine")
        before = snapshot(store)

        with pytest.raises(BadInput, match="after itself"):
            register_jobs(registry, job_id=first, after=[first])

        assert snapshot(store) == before

    def test_explain_names_the_jobs_that_it_waits_for(self, registry: Registry) -> None:
        (first,) = register_jobs(registry, label="before")
        (last,) = register_jobs(registry, after=[first])
        assert f"It waits for job {first}, which is pending." in registry.explain(last)[1]

        registry.fail(first, reason="broken")
        assert f"`mam retry {first[:8]}` replaces it" in " ".join(registry.explain(last)[1])

        again = registry.retry(first).job.job_id
        assert f"job {again}, the retry of {first}, which is pending" in " ".join(registry.explain(last)[1])

    def test_a_retry_of_a_job_that_was_called_off_comes_after_the_same_ones(self, registry: Registry) -> None:
        (first,) = register_jobs(registry, label="before")
        (last,) = register_jobs(registry, after=[first])
        registry.cancel(last)

        again = registry.retry(last).job

        assert (again.status, again.after) == (Status.WAITING, [first])

    def test_a_failure_that_is_retried_is_no_end(self, registry: Registry, clock: FakeClock) -> None:
        job = register_and_claim(registry, label="before")
        (last,) = register_jobs(registry, after=[job.job_id], on_dependency_failure="cancel")
        registry.fail(job.job_id, attempt=job.attempt, reason="flaky", retryable=True)
        registry.sweep()
        assert registry.get(last).status is Status.WAITING

        clock.advance(4000)
        registry.complete(claimed_of(registry, job.job_id), attempt=2)

        assert pick_id(registry) == last

    def test_a_claim_for_one_job_takes_only_that(self, registry: Registry) -> None:
        first, second = register_jobs(registry, 2)
        job = registry.claim(request_for(second))
        assert job is not None
        assert job.job_id == second
        assert registry.claim(request_for(second)) is None
        (last,) = register_jobs(registry, after=[first])
        assert registry.claim(request_for(last)) is None

    def test_a_cycle_closed_by_another_process_is_rejected(self, registry: Registry, store: Store) -> None:
        (first,) = register_jobs(registry, job_id="one", label="before")
        (second,) = register_jobs(registry, job_id="two", after=[first])
        store.change(second, _comes_after("three"))
        before = snapshot(store)

        with pytest.raises(Refused, match="wait for itself"):
            register_jobs(registry, job_id="three", after=[second])

        assert snapshot(store) == before


def _comes_after(job_id: str) -> Act:
    return lambda job, now: Change(job=job.replace(after=[job_id]), lines=(audit_record("adopted", now, job),))


def request_for(job_id: str) -> ClaimRequest:
    return ClaimRequest(label=LABEL, owner="worker", job_id=job_id)


def claimed_of(registry: Registry, job_id: str) -> str:
    assert pick_id(registry, "before") == job_id
    return job_id
