"""Consumers: named, durable positions in the journal, each entry at least once."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from mam.stores.consumer import SAVE_ENTRIES, Consumer
from mam.testing import tasks
from mam.testing.conformance.base import StoreCase, register_and_claim, register_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock
    from mam.testing.races import RacePool


OTHER_POSITIONS: dict[str, Callable[[dict[str, int]], object]] = {
    "another epoch": lambda at: {**at, "epoch": "another"},
    "behind the end": lambda at: {**at, "number": at["number"] + 1000},
    "another entry": lambda at: {**at, "mark": at["mark"] + 1},
    "text": lambda at: {**at, "number": "1"},
    "huge": lambda at: {**at, "number": 1 << 70},
    "no count": lambda at: {**at, "count": None},
    "incomplete": lambda at: {"epoch": at["epoch"]},
    "no object": lambda _: [],
}


class Consumers(StoreCase):
    def test_a_consumer_continues_behind_its_saved_position(self, registry: Registry, store: Store) -> None:
        register_jobs(registry, 3)
        first = loaded(store)
        assert (first.is_new, first.starts_over) == (True, False)
        one, two, three = first.entries()

        first.done(one)
        first.done(two)
        assert list(first.entries()) == [three]
        first.save()

        second = loaded(store)
        assert (second.is_new, second.starts_over) == (False, False)
        assert list(second.entries()) == [three]

    def test_two_consumers_have_positions_of_their_own(self, registry: Registry, store: Store) -> None:
        register_jobs(registry, 2)
        read_all(loaded(store, "one")).save()

        assert len(list(loaded(store, "one").entries())) == 0
        assert len(list(loaded(store, "two").entries())) == 2

    def test_saving_a_position_wakes_no_follower_and_is_no_entry(self, registry: Registry, store: Store) -> None:
        register_jobs(registry)
        offset = store.end_offset()
        store.wait(offset, 0.01)

        read_all(loaded(store)).save()

        assert not store.wait(offset, 0.01), "a follower would keep itself awake for ever"
        assert store.end_offset() == offset

    def test_entries_after_the_saved_position_are_handled_again(self, registry: Registry, store: Store) -> None:
        register_jobs(registry, 2)
        read_all(loaded(store))

        assert len(list(loaded(store).entries())) == 2

    def test_its_own_count_is_saved_with_it(self, registry: Registry, store: Store) -> None:
        register_jobs(registry)
        first = loaded(store)
        first.done(next(first.entries()), 7)
        first.save()

        assert loaded(store).count == 7

    def test_many_entries_are_reason_enough_to_save(self, registry: Registry, store: Store) -> None:
        register_jobs(registry)
        first = loaded(store)
        (entry,) = first.entries()
        assert first.due_in is None
        for _ in range(SAVE_ENTRIES):
            assert first.due_in != 0
            first.done(entry)

        first.save_if_due()

        assert list(loaded(store).entries()) == []

    def test_a_consumer_can_start_at_the_end(self, registry: Registry, store: Store) -> None:
        register_jobs(registry, 3)
        loaded(store).skip_to_end()
        (late,) = register_jobs(registry)

        assert [entry.job_id for entry in loaded(store).entries()] == [late]

    def test_a_position_of_another_journal_starts_over(self, registry: Registry, store: Store) -> None:
        """Also one that was restored from a backup, or that is damaged: nothing is left out."""
        for name, change in OTHER_POSITIONS.items():
            register_and_claim(registry)
            read_all(loaded(store)).save()
            saved = store.position("test")
            assert saved is not None
            store.save_position("test", json.dumps(change(json.loads(saved))))

            again = loaded(store)

            assert again.starts_over, name
            assert list(again.entries()) == list(store.entries(None)), name
            again.save()
            assert not loaded(store).starts_over, f"{name} is reported twice"


class DurableConsumers(StoreCase):
    def test_the_position_survives_reopening(
        self, location: str, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        register_jobs(registry, 2)
        read_all(loaded(store)).save()
        (late,) = register_jobs(registry)
        store.close()

        again = self.open_store(location, clock)
        assert [entry.job_id for entry in loaded(again).entries()] == [late]
        again.close()

    def test_killed_it_leaves_nothing_out(self, live: Store, pool: RacePool) -> None:
        """A consumer that is killed again and again handles every entry at least once."""
        from mam.registry import Registry

        handled: list[int] = []
        for _ in range(3):
            register_jobs(Registry(live), 4)
            racer = pool.start(partial(tasks.consume_until_killed, name="test"))
            handled += [racer.report() for _ in range(2)]
            handled += racer.kill()

        last = loaded(live)
        handled += [entry.number for entry in last.entries()]
        assert set(handled) == {entry.number for entry in live.entries(None)}


def loaded(store: Store, name: str = "test") -> Consumer:
    consumer = Consumer(store, name)
    consumer.load()
    return consumer


def read_all(consumer: Consumer) -> Consumer:
    for entry in consumer.entries():
        consumer.done(entry)
    return consumer
