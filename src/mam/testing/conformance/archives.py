"""Ended jobs leave the way of the others and are still found; jobs of another registry come as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import AlreadyRegistered, Refused, UnknownJob
from mam.jobs.draft import draft_job
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.stores.port import JobWithEvents, Query
from mam.testing.conformance.base import StoreCase, register_jobs

if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock


class Archives(StoreCase):
    def ended(self, registry: Registry, count: int = 1, **choices: object) -> list[str]:
        """Some that are completed, and one more that is not the newest any more."""
        ids = register_jobs(registry, count, **choices)
        for job_id in ids:
            registry.publish(job_id, event="progress", detail="half")
            registry.complete(job_id, result=f"of {job_id}")
        register_jobs(registry)
        return ids

    def test_an_archived_job_is_found_by_its_id_and_is_in_no_list(self, registry: Registry) -> None:
        (job_id,) = self.ended(registry)
        before, events = registry.get(job_id), registry.store.events(job_id)
        assert registry.archive([job_id]) == [job_id]
        assert registry.get(job_id) == before
        assert registry.get(job_id[:20]) == before
        assert registry.events(job_id) == events
        assert len(events) == 2
        assert job_id not in [job.job_id for job in registry.select(Query())]
        assert registry.store.ids_with_prefix(job_id, 5) == []
        with pytest.raises(UnknownJob):
            registry.store.get(job_id)
        assert registry.store.events(job_id) == [] or isinstance(registry.store, MemoryStore)

    def test_many_at_once_are_moved_as_one_is(self, registry: Registry, store: Store) -> None:
        """A store may write many rows in another way than few."""
        drafts = [draft_job(job_id=f"many{number}", prompt=f"é{number}", agent="codex") for number in range(30)]
        ids = [job.job_id for job in store.register_all(drafts)]
        assert ids == [draft.job_id for draft in drafts] == [entry.job_id for entry in store.entries(None)]
        for job_id in ids:
            registry.publish(job_id, event="progress", detail='a "half" \\ of it')
            registry.complete(job_id, result=f"of {job_id}\n")
        register_jobs(registry)
        before, events = [registry.get(job_id) for job_id in ids], [registry.events(job_id) for job_id in ids]
        begin = store.end_offset()
        assert registry.archive(ids) == ids
        assert [(entry.job_id, entry.fields) for entry in store.entries(begin)] == [(job_id, None) for job_id in ids]
        end = int(store.end_offset().partition("@")[0])
        assert store.summarise(ids, end) >= len(ids)
        assert [registry.get(job_id) for job_id in ids] == before
        assert [registry.events(job_id) for job_id in ids] == events

    def test_only_what_has_ended_is_moved(self, registry: Registry) -> None:
        (pending,) = register_jobs(registry)
        (done,) = self.ended(registry)
        assert registry.archive([pending, "nobody00", done]) == [done]
        assert registry.get(pending).status is Status.PENDING
        assert registry.archive([done]) == [done], "it is there already"

    def test_the_newest_stays_so_that_no_number_is_given_twice(self, registry: Registry) -> None:
        first, last = register_jobs(registry, 2)
        for job_id in (first, last):
            registry.cancel(job_id)
        assert registry.archive([first, last]) == [first]
        (another,) = register_jobs(registry)
        assert registry.get(another).number == 3

    def test_nothing_changes_an_archived_job(self, registry: Registry) -> None:
        (job_id,) = self.ended(registry)
        registry.archive([job_id])
        with pytest.raises(Refused, match="archived"):
            registry.cancel(job_id)
        with pytest.raises(AlreadyRegistered):
            register_jobs(registry, job_id=job_id)

    def test_a_key_still_means_the_archived_job(self, registry: Registry) -> None:
        first = registry.register(prompt="once", agent="shell", key="nightly").job
        registry.complete(first.job_id)
        register_jobs(registry)
        assert registry.archive([first.job_id]) == [first.job_id]
        again = registry.register(prompt="twice", agent="shell", key="nightly")
        assert not again.created
        assert again.job.job_id == first.job_id

    def test_an_archived_job_can_be_retried_once(self, registry: Registry) -> None:
        (old,) = register_jobs(registry)
        registry.fail(old, reason="broken")
        register_jobs(registry)
        registry.archive([old])
        new = registry.retry(old)
        assert new.created
        assert new.job.retry_of == old
        assert registry.retry(old).job.job_id == new.job.job_id

    def test_a_dependent_of_an_archived_job_sees_how_its_chain_ended(self, registry: Registry) -> None:
        (old,) = register_jobs(registry)
        registry.fail(old, reason="broken")
        new = registry.retry(old).job.job_id
        registry.complete(new)
        register_jobs(registry)
        assert registry.archive([old]) == [old]
        assert [job.job_id for job in [registry.store.newest(old)] if job is not None] == [new]
        assert registry.archive([new]) == [new]
        assert [job.job_id for job in [registry.store.newest(old)] if job is not None] == [new]
        (after,) = register_jobs(registry, after=[old])
        assert registry.get(after).status is Status.PENDING, "its successor is completed"

    def test_the_journal_records_that_it_was_archived(self, registry: Registry) -> None:
        (job_id,) = self.ended(registry)
        offset = registry.store.end_offset()
        registry.archive([job_id])
        (entry,) = registry.store.entries(offset)
        assert (entry.job_id, entry.fields) == (job_id, None)
        assert [line["event"] for line in entry.lines] == ["archived"]

    def test_the_archive_is_read_in_the_order_of_the_numbers(self, registry: Registry) -> None:
        ids = self.ended(registry, 7)
        registry.archive(ids[4:])
        registry.archive(ids[:4])
        assert [kept.job.job_id for kept in registry.store.archive_contents()] == ids
        assert [job.job_id for job in registry.select_archived(Query())] == ids[::-1]
        assert registry.store.archived_ids_with_prefix("", 3) == sorted(ids)[:3]

    def test_jobs_of_another_registry_come_as_they_are(self, registry: Registry, source: Store) -> None:
        kept = [JobWithEvents(job=job, events=source.events(job.job_id)) for job in source.select(Query())][::-1]
        registry.store.import_jobs(kept)
        registry.store.import_jobs(kept)  # an import was interrupted and begins again
        assert [as_json(job) for job in registry.select(Query())] == [as_json(job) for job in source.select(Query())]
        for one in kept:
            assert registry.store.events(one.job.job_id) == one.events
        (new,) = register_jobs(registry)
        assert registry.get(new).number == kept[-1].job.number + 1
        check_that_work_goes_on(registry, "mine")

    def test_archived_jobs_of_another_registry_come_into_the_archive(self, registry: Registry, source: Store) -> None:
        kept = [
            JobWithEvents(job=job, events=source.events(job.job_id))
            for job in source.select(Query(statuses=frozenset({Status.COMPLETED})))
        ]
        registry.store.import_jobs(kept, archived=True)
        registry.store.import_jobs(kept, archived=True)
        assert list(registry.store.archive_contents()) == kept
        assert list(registry.select(Query())) == []

    @pytest.fixture
    def source(self, clock: FakeClock) -> Store:
        """Another registry, with something of everything in it."""
        other = Registry(MemoryStore(clock))
        done, failed, mine, _held = register_jobs(other, 4, label="mine", exclusive="one at a time")
        other.publish(done, event="progress", data={"percent": 40})
        other.next_seq(done)
        other.complete(done, result="42")
        other.fail(failed, reason="broken")
        other.retry(failed)
        register_jobs(other, label="mine", after=[mine])
        assert other.pick("mine", owner="worker", lease_seconds=1000) is not None
        return other.store


def as_json(job: Job) -> object:
    return job.to_json()


def check_that_work_goes_on(registry: Registry, label: str) -> None:
    """The lease, the key and those that come after others hold as they did where the jobs came from."""
    running = next(job for job in registry.select(Query()) if job.status is Status.RUNNING)
    assert registry.pick(label, owner="other") is None, "the key is in use"
    registry.complete(running.job_id, attempt=running.attempt)
    order = []
    while (job := registry.pick(label, owner="other")) is not None:
        order.append(job.number)
        registry.complete(job.job_id, attempt=job.attempt)
    assert order == sorted(order)
    assert not [job for job in registry.select(Query(label=label)) if not job.status.ended]
