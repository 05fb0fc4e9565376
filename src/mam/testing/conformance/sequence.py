"""Numbers of events: per job, from 1, without gaps, never twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam.errors import ClaimLost
from mam.testing.conformance.base import StoreCase, check_journal, register_and_claim, register_jobs
from mam.testing.tasks import event_numbers

if TYPE_CHECKING:
    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock


class Sequences(StoreCase):
    def test_numbers_begin_at_one_and_are_kept(self, registry: Registry) -> None:
        (job_id,) = register_jobs(registry)

        assert [registry.next_seq(job_id) for _ in range(3)] == [1, 2, 3]
        assert registry.get(job_id).last_seq == 3

    def test_each_job_counts_for_itself(self, registry: Registry) -> None:
        one, two = register_jobs(registry, 2)

        assert [registry.next_seq(job_id) for job_id in (one, two, one, two, two)] == [1, 1, 2, 2, 3]

    def test_an_event_is_stored_with_its_number(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        job = register_and_claim(registry)
        clock.advance(7)

        registry.publish(job.job_id, event="progress", detail="절반", data={"percent": 50}, attempt=1)

        assert store.events(job.job_id) == [
            {
                "schema_version": 1,
                "seq": 1,
                "job_id": job.job_id,
                "event": "progress",
                "timestamp": clock.now().second,
                "detail": "절반",
                "data": {"percent": 50},
            }
        ]
        assert registry.get(job.job_id).last_seq == 1

    def test_every_number_has_an_event_or_a_marker(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        registry.publish(job.job_id, event="started", attempt=1)
        reserved = registry.next_seq(job.job_id)
        registry.publish(job.job_id, event="permission_required", attempt=1)
        registry.complete(job.job_id, attempt=1)

        events = store.events(job.job_id)

        assert reserved == 2
        assert event_numbers(events) == [1, 2, 3, 4]
        told = [event.get("event") or event.get("marker") for event in events]
        assert told == ["started", "reserved", "permission_required", "completed"]
        check_journal(store)

    def test_a_refused_event_uses_up_no_number(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        registry.publish(job.job_id, event="progress", attempt=1)
        for _ in range(3):
            try:
                registry.publish(job.job_id, event="progress", attempt=2)
            except ClaimLost:
                continue

        registry.publish(job.job_id, event="progress", attempt=1)

        assert event_numbers(store.events(job.job_id)) == [1, 2]

    def test_events_of_other_jobs_are_not_printed(self, registry: Registry, store: Store) -> None:
        one, two = register_and_claim(registry), register_and_claim(registry)
        registry.publish(one.job_id, event="progress", detail="one", attempt=1)
        registry.publish(two.job_id, event="progress", detail="two", attempt=1)

        assert [event["detail"] for event in store.events(two.job_id)] == ["two"]
