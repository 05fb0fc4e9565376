"""The journal: what happened, complete and in order, and how to hear of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.jobs.status import Status
from mam.testing.conformance.base import StoreCase, check_journal, job_in_status, register_and_claim, register_jobs

if TYPE_CHECKING:
    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock


class Journals(StoreCase):
    def test_replayed_it_gives_every_record(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        _a_busy_day(registry, clock)

        check_journal(store)

    def test_a_reader_continues_exactly_at_every_offset(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        beginning = store.end_offset()
        _a_busy_day(registry, clock)

        whole = list(store.entries(None))

        assert list(store.entries(beginning)) == whole
        for position, entry in enumerate(whole, start=1):
            assert list(store.entries(entry.offset)) == whole[position:]
        assert list(store.entries(store.end_offset())) == []
        numbers = [entry.number for entry in whole]
        assert numbers == sorted(set(numbers))

    def test_a_cursor_still_holds_when_more_has_happened(self, registry: Registry, store: Store) -> None:
        register_jobs(registry)
        offset = store.end_offset()
        job = register_and_claim(registry, label="somebody else")
        registry.complete(job.job_id, attempt=1)

        assert [entry.job_id for entry in store.entries(offset)] == [job.job_id] * 3

    def test_only_what_changed_is_written(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry, prompt="x" * 100_000)
        offset = store.end_offset()

        registry.publish(job.job_id, event="progress", attempt=1)
        registry.complete(job.job_id, attempt=1)

        fields = [entry.fields or {} for entry in store.entries(offset)]
        assert [changed["last_seq"] for changed in fields] == [1, 2]
        assert all(not {"prompt", "job_id", "created_at"} & set(changed) for changed in fields)

    def test_waiting_for_news_that_is_there_does_not_sleep(self, registry: Registry, store: Store) -> None:
        offset = store.end_offset()
        register_jobs(registry)

        assert store.wait(offset, 60.0)

    def test_a_wait_without_news_times_out_and_does_not_spin(self, registry: Registry, store: Store) -> None:
        register_jobs(registry)
        offset = store.end_offset()
        store.wait(offset, 0.01)  # to be woken once for nothing is allowed

        assert [store.wait(offset, 0.01) for _ in range(3)] == [False] * 3
        assert list(store.entries(offset)) == []

    @pytest.mark.parametrize("name", ["address", "journal_id"])
    def test_a_store_can_be_named(self, store: Store, name: str) -> None:
        assert isinstance(getattr(store, name), str)
        assert getattr(store, name)


def _a_busy_day(registry: Registry, clock: FakeClock) -> None:
    """Every status, a loss, a retry, a marker, and jobs whose entries lie between each other's."""
    lost, failed = register_and_claim(registry, lease_seconds=5), register_and_claim(registry)
    registry.publish(failed.job_id, event="progress", detail="going well", data={"n": 1}, attempt=1)
    registry.next_seq(lost.job_id)
    registry.fail(failed.job_id, attempt=1, reason="no luck", retryable=True)
    registry.retry(job_in_status(registry, "error").job_id)
    clock.advance(30)
    registry.sweep()
    for status in (Status.RUNNING, Status.COMPLETED, Status.ERROR, Status.CANCELLED):
        registry.set_status(register_jobs(registry, label="by hand")[0], status)
