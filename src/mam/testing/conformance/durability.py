"""An acknowledged change exists after any process was killed."""

from __future__ import annotations

from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from mam.errors import MamError
from mam.jobs.draft import draft_job
from mam.registry import Registry
from mam.stores.port import ClaimRequest
from mam.testing import tasks
from mam.testing.conformance.base import (
    StoreCase,
    check_journal,
    claim_again,
    register_and_claim,
    register_jobs,
    snapshot,
)
from mam.testing.tasks import LABEL

if TYPE_CHECKING:
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock
    from mam.testing.races import RacePool

WAKES_WITHIN = 60.0


class Durability(StoreCase):
    def test_opened_again_it_is_the_same(self, location: str, store: Store, clock: FakeClock) -> None:
        registry = Registry(store)
        store.register(draft_job(job_id="odd", prompt="이상한\n일", agent="codex").replace(unknown={"x": [1, None]}))
        job = register_and_claim(registry, key="nightly")
        registry.publish(job.job_id, event="progress", detail="half", attempt=1)
        registry.complete(job.job_id, attempt=1, result="done")
        before, name, offset = snapshot(store), store.journal_id, store.end_offset()
        store.close()

        again = self.open_store(location, clock)

        assert snapshot(again) == before
        assert again.journal_id == name
        assert list(again.entries(offset)) == []
        assert not Registry(again).register(prompt="p", agent="codex", key="nightly").created
        assert again.get("odd").unknown == {"x": [1, None]}
        again.close()

    def test_two_that_are_open_see_each_other(self, location: str, store: Store, clock: FakeClock) -> None:
        other = self.open_store(location, clock)
        mine, theirs = Registry(store), Registry(other)
        offset = other.end_offset()

        job = register_and_claim(mine)
        theirs.publish(job.job_id, event="progress", attempt=1)
        mine.complete(job.job_id, attempt=1)

        assert theirs.get(job.job_id) == mine.get(job.job_id)
        assert [event.get("seq") for event in other.events(job.job_id)] == [1, 2]
        assert [entry.job_id for entry in other.entries(offset)] == [job.job_id] * 4
        assert snapshot(other) == snapshot(store)
        other.close()

    def test_reading_wakes_no_follower(self, location: str, store: Store, clock: FakeClock) -> None:
        other = self.open_store(location, clock)
        job = register_and_claim(Registry(store))
        offset = store.end_offset()
        store.wait(offset, 0.01)

        for _ in range(3):
            assert (list(other.entries(offset)), other.get(job.job_id), other.sweep()) == ([], job, [])
            assert other.claim(ClaimRequest(label=LABEL, owner="worker")) is None
            assert other.due_in() == pytest.approx(3600)
            assert not store.wait(offset, 0.01), "two that wait would keep each other awake for ever"
        other.close()

    def test_a_claim_without_a_job_does_not_wake_its_caller(self, store: Store) -> None:
        offset = store.end_offset()
        store.wait(offset, 0.01)

        for _ in range(3):
            assert (store.claim(ClaimRequest(label="nobody's", owner="worker")), store.sweep()) == (None, [])
            assert not store.wait(offset, 0.01), "a process that waits for work would look for it for ever"

    def test_a_process_that_opens_the_store_later_takes_back_an_expired_claim(
        self, location: str, store: Store, clock: FakeClock
    ) -> None:
        job = register_and_claim(Registry(store), lease_seconds=60)
        clock.restart(61)

        other = self.open_store(location, clock)

        assert claim_again(Registry(other), job.job_id).attempt == 2
        other.close()

    @pytest.mark.parametrize("acts", [1, 2, 3, 4, 5, 21])
    def test_a_kill_loses_nothing_that_was_acknowledged(
        self, live: Store, pool: RacePool, location: str, acts: int
    ) -> None:
        names = [f"round{turn}" for turn in range(3)]
        acknowledged = []
        for name in names:
            racer = pool.start(partial(tasks.work_until_killed, name=name))
            acknowledged += [racer.report() for _ in range(acts)]
            acknowledged += racer.kill()
            _check_acknowledged(live, acknowledged)

        fresh = self.open_store(location)
        _check_acknowledged(fresh, acknowledged)
        check_journal(fresh)
        register_jobs(Registry(fresh))
        assert Registry(fresh).pick(LABEL, owner="worker") is not None, "the store works on after the kills"
        fresh.close()

    def test_a_killed_process_disturbs_no_other(self, live: Store, pool: RacePool) -> None:
        racers = [pool.start(partial(tasks.work_until_killed, name=f"racer{turn}")) for turn in range(4)]
        acknowledged = []
        for racer in racers:
            acknowledged += [racer.report() for _ in range(10)]
        for victim, *survivors in (racers, racers[1:], racers[2:], racers[3:]):
            acknowledged += victim.kill()
            acknowledged += [survivor.report() for survivor in survivors for _ in range(3)]

        _check_acknowledged(live, acknowledged)
        check_journal(live)

    def test_a_store_that_is_closed_wakes_the_thread_that_waits(self, store: Store) -> None:
        offset, answers = store.end_offset(), list[object]()
        store.wait(offset, 0.01)
        begun = Event()

        def wait() -> None:
            store.wait(offset, 0.01)
            begun.set()
            try:
                answers.append(store.wait(offset, WAKES_WITHIN))
            except MamError as gone:
                answers.append(gone)

        waiter = Thread(target=wait)
        waiter.start()
        begun.wait()
        store.close()
        waiter.join(WAKES_WITHIN / 2)

        assert not waiter.is_alive(), "it still waits for a store that is closed"
        assert len(answers) == 1


def _check_acknowledged(store: Store, acknowledged: list[tuple[str, str, int, int]]) -> None:
    """Everything that a racer reported is in the store, though it may have gone on after its report."""
    for act, job_id, attempt, seq in acknowledged:
        job = store.get(job_id)
        assert job.attempt >= attempt
        assert job.last_seq >= seq
        if act == "completed":
            assert (job.status, job.attempt, job.last_seq) == ("completed", attempt, seq)
            assert job.result == f"done {job_id.rpartition('-')[2]}"
        elif act == "claimed":
            assert job.status in ("running", "completed")
        if seq:
            (told,) = [event for event in store.events(job_id) if event["seq"] == seq]
            assert (told.get("event") or told.get("marker")) == act
