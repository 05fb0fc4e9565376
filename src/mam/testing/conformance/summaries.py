"""The journal of archived jobs becomes smaller, and every consumer still finds what it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.jobs.summary import line_origins
from mam.stores.consumer import Consumer, take_snapshot
from mam.stores.port import Query
from mam.testing.conformance.base import StoreCase, history_lines, register_jobs, snapshot

if TYPE_CHECKING:
    from mam.registry import Registry
    from mam.stores.port import Store


def archived_jobs(registry: Registry, count: int = 1) -> list[str]:
    """Jobs with a history, archived, and one more, which is the newest."""
    ids = register_jobs(registry, count)
    for job_id in ids:
        registry.publish(job_id, event="started")
        registry.publish(job_id, event="progress", detail="half")
        registry.complete(job_id, result="done")
    register_jobs(registry)
    assert registry.archive(ids) == ids
    return ids


def origins(store: Store) -> list[tuple[int, int]]:
    return [one for entry in store.entries(None) for one in line_origins(entry.number, entry.fields, entry.lines)]


def summarise_all(store: Store) -> int:
    end = int(store.end_offset().partition("@")[0])
    return store.summarise(store.unsummarised(end), end)


class Summaries(StoreCase):
    def test_the_entries_of_an_archived_job_become_one(self, registry: Registry, store: Store) -> None:
        ids = archived_jobs(registry, 3)
        before, lines = list(store.entries(None)), {job_id: history_lines(store, job_id) for job_id in ids}
        whole = origins(store)
        gone = summarise_all(store)
        after = list(store.entries(None))
        assert len(before) - len(after) == gone > 0
        for job_id in ids:
            assert [entry.fields is None for entry in after if entry.job_id == job_id] == [False, True]
            assert history_lines(store, job_id) == lines[job_id]
        assert sorted(origins(store)) == sorted(whole), "each line says where it comes from"
        assert [entry.number for entry in after] == sorted({entry.number for entry in after})
        assert {entry.number for entry in after} < {entry.number for entry in before}

    def test_a_repeat_changes_nothing(self, registry: Registry, store: Store) -> None:
        ids = archived_jobs(registry, 2)
        summarise_all(store)
        before = snapshot(store)
        assert store.unsummarised(int(store.end_offset().partition("@")[0])) == []
        assert store.summarise(ids, int(store.end_offset().partition("@")[0])) == 0
        assert snapshot(store) == before

    def test_jobs_that_are_not_archived_keep_their_entries(self, registry: Registry, store: Store) -> None:
        (job_id,) = register_jobs(registry)
        registry.complete(job_id)
        register_jobs(registry)
        before = snapshot(store)
        assert store.summarise([job_id, "nobody00"], int(store.end_offset().partition("@")[0])) == 0
        assert snapshot(store) == before
        assert store.summarised_upto() == 0

    def test_entries_from_a_number_on_stay(self, registry: Registry, store: Store) -> None:
        (job_id,) = archived_jobs(registry)
        numbers = [entry.number for entry in store.entries(None) if entry.job_id == job_id]
        assert store.summarise([job_id], numbers[2]) == 1
        left = [entry.number for entry in store.entries(None) if entry.job_id == job_id]
        assert left == numbers[1:]
        assert store.summarised_upto() == numbers[2]
        assert store.summarise([job_id], numbers[-1]) == len(numbers) - 3, "a summary is summarised again"

    def test_the_archive_does_not_change(self, registry: Registry, store: Store) -> None:
        (job_id,) = archived_jobs(registry)
        before, events = registry.get(job_id), registry.events(job_id)
        summarise_all(store)
        assert (registry.get(job_id), registry.events(job_id)) == (before, events)

    def test_a_consumer_that_was_silent_is_lost_and_starts_over(self, registry: Registry, store: Store) -> None:
        silent, ahead = Consumer(store, "silent"), Consumer(store, "ahead")
        register_jobs(registry)
        silent.load()
        for entry in silent.entries():
            silent.done(entry)
        silent.save()
        (job_id,) = archived_jobs(registry)
        ahead.load()
        for entry in ahead.entries():
            ahead.done(entry)
        ahead.save()
        summarise_all(store)
        assert set(store.consumers()) == {"silent", "ahead"}

        ahead.load()
        assert (ahead.is_lost, ahead.starts_over, list(ahead.entries())) == (False, False, [])
        silent.load()
        assert silent.is_lost
        assert silent.starts_over
        found = [line["event"] for entry in silent.entries() if entry.job_id == job_id for line in entry.lines]
        assert found[0] == "registered"
        assert found[-1] == "archived"
        for entry in silent.entries():
            silent.done(entry)
        silent.save()
        silent.load()
        assert not silent.is_lost

    def test_a_lost_consumer_that_starts_over_in_parts_is_not_lost_again(
        self, registry: Registry, store: Store
    ) -> None:
        first = Consumer(store, "one")
        register_jobs(registry)
        first.load()
        first.skip_to_end()
        archived_jobs(registry, 3)
        summarise_all(store)
        read = list[int]()
        for turn in range(100):
            consumer = Consumer(store, "one")
            consumer.load()
            assert consumer.is_lost == (turn == 0)
            entry = next(iter(consumer.entries()), None)
            if entry is None:
                break
            read.append(entry.number)
            consumer.done(entry)
            consumer.save()
        assert read == [entry.number for entry in store.entries(None)]

    def test_a_lost_consumer_may_go_on_from_a_snapshot(self, registry: Registry, store: Store) -> None:
        consumer = Consumer(store, "silent")
        register_jobs(registry)
        consumer.load()
        consumer.skip_to_end()
        seen = consumer.at.number
        archived_jobs(registry, 2)
        summarise_all(store)
        consumer.load()
        assert (consumer.is_lost, consumer.lost_at) == (True, seen)
        consumer.save()
        consumer.load()
        assert consumer.is_lost, "until it has handled something"

        taken = take_snapshot(store)
        (late,) = register_jobs(registry)
        known = {job.job_id: job.to_json() for job in taken.jobs}
        consumer.go_on_after(taken.offset)
        again = Consumer(store, "silent")
        again.load()
        assert (again.is_lost, again.starts_over) == (False, False)
        following = list(again.entries())
        assert [entry.job_id for entry in following] == [late]
        for entry in following:
            assert entry.fields is not None
            known.setdefault(entry.job_id, {}).update(entry.fields)
        assert known == {job.job_id: job.to_json() for job in store.select(Query())}

    @pytest.mark.parametrize("count", [1, 7])
    def test_sums_stay_the_same(self, registry: Registry, store: Store, count: int) -> None:
        from mam.stats.fold import transitions_in

        archived_jobs(registry, count)

        def folded() -> list[tuple[str, str, str, int, int]]:
            found = [one for entry in store.entries(None) for one in transitions_in(entry)]
            return sorted((one.job_id, one.status or "", one.label, one.attempts, one.tokens) for one in found)

        before = folded()
        summarise_all(store)
        assert folded() == before
