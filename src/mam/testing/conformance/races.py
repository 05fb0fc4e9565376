"""Many at once: processes where the store allows it, threads where it does not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from mam.registry import Registry
from mam.testing import tasks
from mam.testing.conformance.base import StoreCase, check_journal, register_and_claim, register_jobs, terminal_events
from mam.testing.tasks import event_numbers

if TYPE_CHECKING:
    from mam.stores.port import Store
    from mam.testing.races import RacePool

RACERS = 8


class Races(StoreCase):
    def test_racing_for_one_job_too_few_leaves_exactly_one_with_nothing(self, live: Store, pool: RacePool) -> None:
        jobs = register_jobs(Registry(live), RACERS - 1)

        got = pool.race([tasks.claim_one] * RACERS)

        assert got.count(None) == 1
        assert sorted(claim for claim in got if claim) == sorted((job_id, 1) for job_id in jobs)
        check_journal(live)

    def test_every_job_is_claimed_exactly_once(self, live: Store, pool: RacePool) -> None:
        jobs = register_jobs(Registry(live), 60)

        got = pool.race([tasks.claim_all] * 4)

        assert sorted(claim for some in got for claim in some) == sorted((job_id, 1) for job_id in jobs)
        check_journal(live)

    def test_a_hundred_numbers_at_once_are_a_hundred_numbers(self, live: Store, pool: RacePool) -> None:
        (job_id,) = register_jobs(Registry(live))

        got = pool.race([partial(tasks.next_seqs, job_id=job_id, times=10)] * 10)

        assert sorted(number for some in got for number in some) == list(range(1, 101))
        assert all(some == sorted(some) for some in got)
        assert live.get(job_id).last_seq == 100
        assert event_numbers(live.events(job_id)) == list(range(1, 101))

    def test_one_key_at_once_is_one_job(self, live: Store, pool: RacePool) -> None:
        got = pool.race([partial(tasks.register_with_key, key="nightly")] * RACERS)

        assert len({job_id for job_id, _ in got}) == 1
        assert [created for _, created in got].count(True) == 1
        assert len(live.ids_with_prefix(got[0][0], 10)) == 1
        check_journal(live)

    def test_one_id_at_once_belongs_to_one(self, live: Store, pool: RacePool) -> None:
        got = pool.race([partial(tasks.register_as, job_id="abc12345")] * RACERS)

        assert got.count(True) == 1
        check_journal(live)

    def test_many_at_once_from_many_at_once_are_as_many_numbers(self, live: Store, pool: RacePool) -> None:
        names = [f"racer{turn}" for turn in range(RACERS)]

        got = pool.race([partial(tasks.register_many, name=name, count=12) for name in names])

        assert len({number for some in got for number in some}) == 12 * RACERS
        assert all(some == sorted(some) for some in got)
        check_journal(live)

    def test_one_retry_at_once_is_one_job(self, live: Store, pool: RacePool) -> None:
        registry = Registry(live)
        old = register_and_claim(registry)
        registry.fail(old.job_id, attempt=1, reason="broken")

        got = pool.race([partial(tasks.retry_of, job_id=old.job_id)] * RACERS)

        assert len(set(got)) == 1
        check_journal(live)

    def test_a_loss_that_all_see_at_once_is_one_loss(self, live: Store, pool: RacePool) -> None:
        registry = Registry(live)
        lost = [register_and_claim(registry).job_id for _ in range(10)]
        for job_id in lost:
            registry.heartbeat(job_id, attempt=1, lease_seconds=0)

        got = pool.race([tasks.sweep_once] * RACERS)

        assert sorted(job_id for some in got for job_id in some) == sorted(lost)
        assert {(live.get(job_id).losses, live.get(job_id).status) for job_id in lost} == {(1, "pending")}
        check_journal(live)

    @pytest.mark.parametrize("rivals", [("complete", "cancel"), ("complete", "fail"), ("fail", "cancel", "complete")])
    def test_rival_endings_leave_one_end(self, live: Store, pool: RacePool, rivals: tuple[str, ...]) -> None:
        registry = Registry(live)
        for _ in range(5):
            job = register_and_claim(registry)
            ends = [partial(tasks.end_as, job_id=job.job_id, verb=verb, attempt=job.attempt) for verb in rivals]

            got = pool.race(ends)

            assert got.count(True) == 1
            assert len(terminal_events(live, job.job_id)) == 1
        check_journal(live)

    def test_readers_never_see_half_a_write(self, live: Store, pool: RacePool) -> None:
        registry = Registry(live)
        jobs = [f"shared-{turn}" for turn in range(6)]
        for job_id in jobs:
            register_jobs(registry, job_id=job_id)
        reading = partial(tasks.read_along, job_ids=jobs)
        writing = partial(tasks.hand_around, times=25)

        *readers, one, two = pool.race_on([reading, reading, writing, writing])
        one.result()
        two.result()
        register_jobs(registry, job_id=tasks.LAST)

        assert all(reader.result() > 0 for reader in readers)
        check_journal(live)

    def test_a_waiting_process_is_woken_by_another_one(self, live: Store, pool: RacePool) -> None:
        rounds = 20
        sleeper = pool.start(partial(tasks.wait_for_entries, rounds=rounds))

        for _ in range(rounds):
            sleeper.report()
            register_jobs(Registry(live))

        assert sleeper.result() == rounds
