"""Who gets which job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.jobs.status import Status
from mam.stores.port import ClaimRequest, Query
from mam.testing.conformance.base import (
    StoreCase,
    history_lines,
    job_in_status,
    pick_id,
    register_and_claim,
    register_jobs,
    snapshot,
)
from mam.testing.tasks import LABEL
from mam.util.clock import parse_time

if TYPE_CHECKING:
    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock


class Claims(StoreCase):
    def test_the_highest_priority_goes_first_and_then_the_oldest(self, registry: Registry) -> None:
        normal = register_jobs(registry, 2)
        (urgent,) = register_jobs(registry, priority=5)
        (late,) = register_jobs(registry, priority=-5)
        (urgent_too,) = register_jobs(registry, priority=5)

        order = [pick_id(registry) for _ in range(6)]

        assert order == [urgent, urgent_too, *normal, late, None]

    def test_age_is_the_order_of_registration_even_when_the_clock_steps_back(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        jobs = []
        for step in (0, -3600, -86_400, 7200, 0):
            clock.set_wall(step)
            jobs += register_jobs(registry)

        assert [pick_id(registry) for _ in jobs] == jobs

    def test_a_job_that_comes_back_keeps_its_place(self, registry: Registry) -> None:
        first, second = register_jobs(registry, 2)
        held = registry.pick(LABEL, owner="worker")
        assert held is not None
        registry.release(held.job_id, attempt=held.attempt)

        assert [pick_id(registry), pick_id(registry)] == [first, second]

    @pytest.mark.parametrize("how", ["spoken of", "handed back"])
    def test_a_job_cancelled_while_pending_blocks_no_other(self, registry: Registry, store: Store, how: str) -> None:
        gone, left = register_jobs(registry, 2)
        if how == "spoken of":
            registry.publish(gone, event="progress")
        else:
            assert pick_id(registry) == gone
            registry.release(gone, attempt=1)
        registry.cancel(gone)

        assert store.ahead_of(registry.get(left)) == 0
        assert [pick_id(registry), pick_id(registry)] == [left, None]
        assert store.problems() == []

    def test_a_label_is_exact(self, registry: Registry) -> None:
        (job_id,) = register_jobs(registry, label="tmux:claude")

        near = ["tmux:claude-a", "tmux:claud", "tmux:Claude", "tmux:claude ", "tmux:claude\u200b", "tmux:claud_"]
        for other in [*near, "tmux", "%"]:
            assert pick_id(registry, other) is None, other
        assert registry.get(job_id).attempt == 0
        assert pick_id(registry, "tmux:claude") == job_id

    def test_labels_that_only_look_the_same_are_different(self, registry: Registry) -> None:
        composed, decomposed = "caf\u00e9", "cafe\u0301"
        (one,) = register_jobs(registry, label=composed)
        (two,) = register_jobs(registry, label=decomposed)

        assert [pick_id(registry, decomposed), pick_id(registry, composed)] == [two, one]

    def test_nothing_to_claim_is_an_answer_and_writes_nothing(self, registry: Registry, store: Store) -> None:
        for status in ("waiting", "running", "completed", "error", "cancelled"):
            job_in_status(registry, status)
        before = snapshot(store)

        assert store.claim(ClaimRequest(label=LABEL, owner="worker")) is None
        assert snapshot(store) == before

    def test_a_claim_records_owner_and_expiry(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        (job_id,) = register_jobs(registry)
        clock.advance(5)

        job = store.claim(ClaimRequest(label=LABEL, owner="worker-7", lease_seconds=60))

        assert job is not None
        assert (job.job_id, job.status, job.attempt, job.owner) == (job_id, "running", 1, "worker-7")
        assert job.lease is not None
        assert parse_time(job.lease.expires_at) == clock.now().wall_ms + 60_000
        assert job.updated_at == clock.now().second > job.created_at
        assert store.get(job_id) == job
        assert [line["event"] for line in history_lines(store, job_id)] == ["registered", "status_changed"]
        assert store.events(job_id) == [], "a claim sends nothing"

    @pytest.mark.parametrize(("timeout_sec", "lease"), [(3600, 3600), (90, 90), (0, 24 * 3600)])
    def test_a_claim_without_a_lease_takes_the_time_limit_of_the_job(
        self, registry: Registry, clock: FakeClock, timeout_sec: int, lease: int
    ) -> None:
        job = register_and_claim(registry, timeout_sec=timeout_sec)

        assert job.lease is not None
        assert parse_time(job.lease.expires_at) == clock.now().wall_ms + lease * 1000

    def test_attempts_count_claims_without_limit(self, registry: Registry) -> None:
        (job_id,) = register_jobs(registry)

        attempts = []
        for _ in range(8):
            job = registry.pick(LABEL, owner="worker")
            assert job is not None
            attempts.append(job.attempt)
            registry.release(job_id, attempt=job.attempt)

        assert attempts == [1, 2, 3, 4, 5, 6, 7, 8]

    def test_how_many_are_ahead_is_how_many_are_claimed_first(self, registry: Registry, store: Store) -> None:
        for priority in (0, 3, -2, 3, 0, 7, -2, 0):
            register_jobs(registry, priority=priority)
            register_jobs(registry, priority=9, label="somebody else")
        job_in_status(registry, "waiting")
        pending = store.select(Query(statuses=frozenset({Status.PENDING}), label=LABEL))
        ahead = {job.job_id: store.ahead_of(job) for job in pending}

        order = [pick_id(registry) for _ in ahead]

        assert [ahead[job_id or ""] for job_id in order] == list(range(len(order)))
