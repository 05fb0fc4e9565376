"""What time does to a job: leases run out, waits come to an end, and no jump of a clock fakes either."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.jobs.sweep import SWEEP_LIMIT
from mam.stores.port import ClaimRequest, Query
from mam.testing.conformance.base import (
    StoreCase,
    check_journal,
    claim_again,
    pick_id,
    register_and_claim,
    register_jobs,
    terminal_events,
    transitions_of,
)
from mam.testing.tasks import LABEL
from mam.util.clock import parse_time

if TYPE_CHECKING:
    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock

DAY = 86_400


class Time(StoreCase):
    # -- leases --------------------------------------------------------------------------------------------------

    def test_a_claim_takes_over_what_was_lost(self, registry: Registry, clock: FakeClock) -> None:
        job = register_and_claim(registry, lease_seconds=60)
        clock.advance(60)

        again = claim_again(registry, job.job_id)

        assert (again.attempt, again.losses, again.retries) == (2, 1, 0)

    def test_until_the_last_millisecond_the_job_is_held(self, registry: Registry, clock: FakeClock) -> None:
        job = register_and_claim(registry, lease_seconds=60)

        clock.advance(59.999)
        assert registry.sweep() == []
        clock.advance(0.001)
        assert [(lost.job_id, lost.status, lost.losses) for lost in registry.sweep()] == [(job.job_id, "pending", 1)]

    def test_a_lost_job_has_no_owner(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        job = register_and_claim(registry, lease_seconds=60)
        clock.advance(61)

        registry.sweep()

        lost = registry.get(job.job_id)
        assert (lost.owner, lost.lease) == (None, None)
        assert transitions_of(store, job.job_id)[-1] == ("running", "pending")
        assert store.events(job.job_id) == [], "a loss that is tried again is no event"

    @pytest.mark.parametrize("sign", ["heartbeat", "progress", "permission_required", "started"])
    def test_a_sign_of_life_renews_the_lease_for_as_long_as_it_was_taken(
        self, registry: Registry, clock: FakeClock, sign: str
    ) -> None:
        job = register_and_claim(registry, lease_seconds=60)
        clock.advance(59)

        if sign == "heartbeat":
            registry.heartbeat(job.job_id, attempt=1)
        else:
            registry.publish(job.job_id, event=sign, attempt=1)

        clock.advance(59)
        assert registry.sweep() == []
        clock.advance(1)
        assert [lost.job_id for lost in registry.sweep()] == [job.job_id]

    def test_a_heartbeat_may_ask_for_another_length(self, registry: Registry, clock: FakeClock) -> None:
        job = register_and_claim(registry, lease_seconds=60)

        registry.heartbeat(job.job_id, attempt=1, lease_seconds=600)

        clock.advance(599)
        assert registry.sweep() == []

    @pytest.mark.parametrize("jump", [10 * DAY, -10 * DAY])
    def test_a_jump_of_the_wall_clock_ends_no_lease_and_saves_none(
        self, registry: Registry, clock: FakeClock, jump: float
    ) -> None:
        if not self.has_boot_clock:
            pytest.skip("the wall clock decides in this store")
        job = register_and_claim(registry, lease_seconds=60)

        clock.set_wall(jump)
        assert registry.sweep() == []
        assert pick_id(registry) is None
        clock.advance(61)
        assert [lost.job_id for lost in registry.sweep()] == [job.job_id]

    def test_after_a_restart_the_wall_clock_decides(self, registry: Registry, clock: FakeClock) -> None:
        job = register_and_claim(registry, lease_seconds=60)

        clock.restart(59)
        assert registry.sweep() == []
        clock.advance(1)
        assert [lost.job_id for lost in registry.sweep()] == [job.job_id]

    def test_the_clock_of_another_boot_is_not_compared(self, registry: Registry, clock: FakeClock) -> None:
        job = register_and_claim(registry, lease_seconds=60)

        clock.restart(DAY)

        assert claim_again(registry, job.job_id).attempt == 2

    def test_a_lease_of_another_boot_ends_also_when_its_job_was_touched_since(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        job = register_and_claim(registry, lease_seconds=60)
        clock.restart(1)
        assert registry.sweep() == []

        registry.next_seq(job.job_id)

        assert store.due_in() == 59
        clock.advance(59)
        assert [lost.job_id for lost in registry.sweep()] == [job.job_id]

    # -- losses and retries --------------------------------------------------------------------------------------

    def test_the_third_loss_is_the_end(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        job = register_and_claim(registry, lease_seconds=60)
        for losses in (1, 2):
            clock.advance(61)
            assert claim_again(registry, job.job_id, lease_seconds=60).losses == losses
        clock.advance(61)

        assert pick_id(registry) is None

        lost = registry.get(job.job_id)
        assert (lost.status, lost.losses, lost.attempt, lost.reason) == ("error", 3, 3, "lost 3 times")
        assert terminal_events(store, job.job_id) == [("error", "error")]
        registry.sweep()
        assert registry.get(job.job_id) == lost
        check_journal(store)

    def test_a_release_costs_nothing(self, registry: Registry) -> None:
        job = register_and_claim(registry)
        for attempt in range(1, 7):
            registry.release(job.job_id, attempt=attempt)
            claim_again(registry, job.job_id)

        held = registry.get(job.job_id)
        assert (held.status, held.attempt, held.losses, held.retries) == ("running", 7, 0, 0)

    def test_a_failure_that_may_be_retried_waits_longer_each_time_and_then_is_final(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        job = register_and_claim(registry, max_retries=3)
        delays = []
        for retries in (1, 2, 3):
            failed = registry.fail(job.job_id, attempt=retries, reason="no luck", retryable=True)
            assert (failed.status, failed.waiting_for, failed.retries) == ("waiting", "retry", retries)
            assert failed.due_at is not None
            delay = (parse_time(failed.due_at) - clock.now().wall_ms) / 1000
            clock.advance(delay - 0.001)
            assert pick_id(registry) is None
            clock.advance(0.001)
            claim_again(registry, job.job_id)
            delays.append(delay)

        assert terminal_events(store, job.job_id) == []
        final = registry.fail(job.job_id, attempt=4, reason="no luck", retryable=True)

        assert delays == sorted(set(delays)), "each wait is longer than the one before"
        assert (final.status, final.retries, final.losses) == ("error", 3, 0)
        assert "no luck" in (final.reason or "")
        assert terminal_events(store, job.job_id) == [("error", "error")]
        check_journal(store)

    def test_chance_spreads_the_waits(self, registry: Registry, clock: FakeClock) -> None:
        due = set()
        for chance in (0.0, 0.3, 0.9):
            clock.let_chance_be(chance)
            job = register_and_claim(registry)
            due.add(registry.fail(job.job_id, attempt=1, reason="no luck", retryable=True).due_at)

        assert len(due) == 3

    def test_a_job_without_retries_fails_at_once(self, registry: Registry) -> None:
        job = register_and_claim(registry, max_retries=0)

        assert registry.fail(job.job_id, attempt=1, reason="no luck", retryable=True).status == "error"

    # -- waiting -------------------------------------------------------------------------------------------------

    def test_a_job_with_a_start_time_waits_for_it(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        (job_id,) = register_jobs(registry, due_ms=clock.now().wall_ms + 60_000)
        assert (registry.get(job_id).status, registry.get(job_id).waiting_for) == ("waiting", "time")
        assert pick_id(registry) is None

        clock.advance(60)

        assert pick_id(registry) == job_id
        assert transitions_of(store, job_id) == [("waiting", "pending"), ("pending", "running")]
        assert (registry.get(job_id).due_at, registry.get(job_id).waiting_for) == (None, None)

    def test_a_start_time_that_has_passed_is_now(self, registry: Registry, clock: FakeClock) -> None:
        (job_id,) = register_jobs(registry, due_ms=clock.now().wall_ms - 1)

        assert registry.get(job_id).status == "pending"

    def test_a_start_time_is_a_time_of_the_wall_clock(self, registry: Registry, clock: FakeClock) -> None:
        (job_id,) = register_jobs(registry, due_ms=clock.now().wall_ms + 60_000)

        clock.restart()
        assert pick_id(registry) is None
        clock.set_wall(60)
        assert pick_id(registry) == job_id

    # -- the bounded sweep ---------------------------------------------------------------------------------------

    def test_one_sweep_settles_a_bounded_number_longest_due_first(self, registry: Registry, clock: FakeClock) -> None:
        longest_due_first = _running_with_shuffled_leases(registry, 2 * SWEEP_LIMIT + 3)
        clock.advance(DAY)

        swept = [[job.job_id for job in registry.sweep()] for _ in range(4)]

        assert [len(some) for some in swept] == [SWEEP_LIMIT, SWEEP_LIMIT, 3, 0]
        assert [job_id for some in swept for job_id in some] == longest_due_first

    def test_waits_and_leases_share_one_queue(self, registry: Registry, clock: FakeClock) -> None:
        start = clock.now().wall_ms
        lost = register_and_claim(registry, lease_seconds=200).job_id
        (early,) = register_jobs(registry, due_ms=start + 100_000)
        (late,) = register_jobs(registry, due_ms=start + 300_000)
        clock.advance(DAY)

        assert [job.job_id for job in registry.sweep()] == [early, lost, late]

    def test_one_claim_settles_no_more_than_a_sweep(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        longest_due_first = _running_with_shuffled_leases(registry, SWEEP_LIMIT + 5)
        clock.advance(DAY)
        offset = store.end_offset()

        job = store.claim(ClaimRequest(label=LABEL, owner="worker"))

        assert job is not None
        touched = [entry.job_id for entry in store.entries(offset)]
        assert touched == [*longest_due_first[:SWEEP_LIMIT], job.job_id]
        assert job.number == min(other.number for other in map(registry.get, longest_due_first[:SWEEP_LIMIT]))

    # -- clocks --------------------------------------------------------------------------------------------------

    def test_how_long_until_time_decides_something(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        register_jobs(registry)
        assert store.due_in() is None
        register_jobs(registry, label="later", due_ms=clock.now().wall_ms + 90_000)
        assert store.due_in() == pytest.approx(90)
        job = registry.pick(LABEL, owner="worker", lease_seconds=60)
        assert job is not None
        assert store.due_in() == pytest.approx(60)
        clock.advance(50)
        assert store.due_in() == pytest.approx(10)
        clock.advance(1000)
        assert store.due_in() == 0
        registry.complete(job.job_id, attempt=1)
        registry.sweep()
        assert store.due_in() is None

    def test_no_job_is_older_than_its_creation(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        (early,) = register_jobs(registry, label="early")
        clock.set_wall(-DAY)
        job = registry.pick("early", owner="worker", lease_seconds=1)
        assert job is not None
        registry.publish(early, event="progress", attempt=1)
        clock.advance(2)
        registry.sweep()
        claim_again(registry, early)
        registry.complete(early, attempt=2)

        assert all(job.created_at <= job.updated_at for job in store.select(Query()))
        assert all(entry.fields and "created_at" not in entry.fields for entry in list(store.entries(None))[1:])


def _running_with_shuffled_leases(registry: Registry, count: int) -> list[str]:
    """Ids in the order in which their leases run out, which is not the order of their registration."""
    assert SWEEP_LIMIT <= 100, "no claim pays for a long absence of all others"
    by_lease = {}
    for turn in range(count):
        lease = 60 + turn * 37 % count
        by_lease[lease] = register_and_claim(registry, lease_seconds=lease).job_id
    assert len(by_lease) == count
    return [by_lease[lease] for lease in sorted(by_lease)]
