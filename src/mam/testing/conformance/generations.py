"""One life of a session after the other: the newest holds the jobs, and those before it can do nothing any more."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from mam.errors import BadInput, ClaimLost, GenerationLost
from mam.jobs.pause import Pause
from mam.jobs.status import RUNNING
from mam.registry import Registry
from mam.stores.port import ClaimRequest, Query
from mam.testing import tasks
from mam.testing.conformance.base import StoreCase, check_journal, history_lines, job_in_status, register_jobs, snapshot
from mam.testing.tasks import LABEL, SESSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.record import Job
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock
    from mam.testing.races import RacePool

LATE_WRITES: dict[str, Callable[[Registry, str], object]] = {
    "complete": lambda registry, job_id: registry.complete(job_id, attempt=1),
    "fail": lambda registry, job_id: registry.fail(job_id, reason="r", attempt=1),
    "fail retryably": lambda registry, job_id: registry.fail(job_id, reason="r", attempt=1, retryable=True),
    "heartbeat": lambda registry, job_id: registry.heartbeat(job_id, attempt=1),
    "publish": lambda registry, job_id: registry.publish(job_id, event="progress", attempt=1),
    "release": lambda registry, job_id: registry.release(job_id, attempt=1),
}


def held(registry: Registry, generation: str, agent: str = SESSION) -> Job:
    """A new job that this session holds."""
    (job_id,) = register_jobs(registry)
    job = registry.pick(LABEL, owner="worker", session=(agent, generation))
    assert job is not None
    assert job.job_id == job_id
    return job


class Generations(StoreCase):
    def test_a_claim_names_its_session_for_as_long_as_it_holds(self, registry: Registry) -> None:
        job = held(registry, "first")

        assert job.claimant == {"agent_id": SESSION, "generation_id": "first"}
        assert registry.heartbeat(job.job_id, attempt=1).claimant == job.claimant
        assert registry.release(job.job_id, attempt=1).claimant is None
        again = registry.pick(LABEL, owner="worker")
        assert again is not None
        assert (again.job_id, again.claimant) == (job.job_id, None)

    @pytest.mark.parametrize("end", ["complete", "fail", "cancel", "retry later", "lost"])
    def test_a_session_holds_no_job_that_has_ended(self, registry: Registry, clock: FakeClock, end: str) -> None:
        job_id = held(registry, "first").job_id
        if end == "lost":
            clock.advance(3601)
            registry.sweep()
        else:
            {
                "complete": lambda: registry.complete(job_id, attempt=1),
                "fail": lambda: registry.fail(job_id, attempt=1, reason="broken"),
                "cancel": lambda: registry.cancel(job_id),
                "retry later": lambda: registry.fail(job_id, attempt=1, reason="broken", retryable=True),
            }[end]()

        assert registry.get(job_id).claimant is None
        before = snapshot(registry.store)
        assert registry.announce(SESSION, "second") == []
        assert snapshot(registry.store) == before

    def test_the_next_generation_has_the_job_of_the_last_one_at_once(self, registry: Registry) -> None:
        job = held(registry, "first")

        again = registry.pick(LABEL, owner="worker", session=(SESSION, "second"))

        assert again is not None
        assert (again.job_id, again.attempt, again.losses, again.retries) == (job.job_id, 2, 0, 0)
        assert again.claimant == {"agent_id": SESSION, "generation_id": "second"}
        moves = [
            (line["from"], line["to"], line["by"]) for line in history_lines(registry.store, job.job_id) if "by" in line
        ]
        assert moves[-2:] == [("running", "pending", "generation"), ("pending", "running", "pick")]
        check_journal(registry.store)

    def test_announced_it_gives_back_all_that_its_predecessor_held_and_nothing_else(self, registry: Registry) -> None:
        mine = [held(registry, "first").job_id for _ in range(3)]
        ended = held(registry, "first").job_id
        registry.complete(ended, attempt=1)
        others = [held(registry, "first", agent="another").job_id, job_in_status(registry, "running").job_id]

        moved = registry.announce(SESSION, "second")

        assert sorted(job.job_id for job in moved) == sorted(mine)
        assert {(job.status, job.owner, job.lease, job.claimant) for job in moved} == {("pending", None, None, None)}
        assert moved == [registry.get(job.job_id) for job in moved]
        assert {registry.get(job_id).status.value for job_id in others} == {"running"}
        assert registry.get(ended).status == "completed"
        check_journal(registry.store)

    def test_a_repeated_announcement_changes_nothing(self, registry: Registry) -> None:
        job = held(registry, "first")
        before = snapshot(registry.store)

        assert registry.announce(SESSION, "first") == []
        assert registry.pick(LABEL, owner="worker", session=(SESSION, "first")) is None

        assert snapshot(registry.store) == before
        assert registry.complete(job.job_id, attempt=1).status == "completed"

    def test_writes_of_a_replaced_generation_are_rejected(self, registry: Registry) -> None:
        job = held(registry, "first")
        registry.announce(SESSION, "second")
        before = snapshot(registry.store)

        for verb, write in LATE_WRITES.items():
            with pytest.raises(ClaimLost):
                write(registry, job.job_id)

            assert snapshot(registry.store) == before, verb

    def test_a_replaced_generation_never_comes_back(self, registry: Registry, clock: FakeClock) -> None:
        for generation in ("first", "second", "third"):
            registry.announce(SESSION, generation)
        register_jobs(registry)
        clock.restart(400 * 86_400)
        before = snapshot(registry.store)

        for generation in ("first", "second"):
            with pytest.raises(GenerationLost, match="generation third now"):
                registry.announce(SESSION, generation)
            with pytest.raises(GenerationLost):
                registry.pick(LABEL, owner="worker", session=(SESSION, generation))

        assert snapshot(registry.store) == before
        assert registry.pick(LABEL, owner="worker", session=(SESSION, "third")) is not None

    def test_generations_of_other_sessions_are_ignored(self, registry: Registry) -> None:
        registry.announce(SESSION, "first")
        registry.announce(SESSION, "second")

        assert registry.announce("another", "first") == []
        assert held(registry, "first", agent="another").attempt == 1

    def test_a_key_is_free_when_its_holder_is_displaced(self, registry: Registry) -> None:
        first, second = register_jobs(registry, 2, exclusive="gpu")
        assert registry.pick(LABEL, owner="worker", session=(SESSION, "first")) is not None
        assert registry.pick(LABEL, owner="worker") is None

        registry.announce(SESSION, "second")

        taken = registry.pick(LABEL, owner="worker")
        assert taken is not None
        assert taken.job_id == first
        registry.complete(first, attempt=2)
        assert registry.pick(LABEL, owner="worker", session=(SESSION, "second")) == registry.get(second)

    def test_a_usage_pause_does_not_keep_a_replaced_one_in(self, registry: Registry) -> None:
        job = held(registry, "first")
        registry.pause(Pause())

        assert registry.pick(LABEL, owner="worker", session=(SESSION, "second")) is None

        assert registry.get(job.job_id).status == "pending"

    def test_an_invalid_id_is_rejected_before_anything_happens(self, registry: Registry) -> None:
        register_jobs(registry)
        before = snapshot(registry.store)

        for session in (("", "g"), ("a", ""), ("a/b", "g"), ("a", "g\n"), ("a", "x" * 129), ("é", "g"), ("a", "..")):
            with pytest.raises(BadInput):
                registry.announce(*session)
            with pytest.raises(BadInput):
                registry.pick(LABEL, owner="w", session=session)

        assert snapshot(registry.store) == before

    def test_of_many_simultaneous_generations_one_wins_and_no_older_one_returns(
        self, live: Store, pool: RacePool
    ) -> None:
        names = [f"life-{number}" for number in range(6)]
        jobs = register_jobs(Registry(live), 30)

        done = pool.race([partial(tasks.live_as, generation=name) for name in names])

        assert sorted(job_id for some in done for job_id in some) == sorted(jobs), "each is finished exactly once"
        check_no_return(live)
        check_journal(live)
        assert len([name for name in names if not _is_refused(live, name)]) == 1

    def test_a_takeover_between_claim_and_end_is_never_missed(self, live: Store, pool: RacePool) -> None:
        """The old one claims and finishes for ever; whatever it is at when the new one speaks, it holds nothing."""
        register_jobs(Registry(live), 3)
        for life in range(1, 6):
            old = pool.start(partial(tasks.live_as, generation=f"life-{life}", forever=True))
            old.report()
            live.announce(SESSION, f"life-{life + 1}")

            claims = [job.claimant for job in live.select(Query(statuses=frozenset({RUNNING})))]

            assert claims == []
            old.result()
        check_no_return(live)
        check_journal(live)


class DurableGenerations(StoreCase):
    """For stores that outlive a process."""

    def test_opened_again_it_knows_them(self, location: str, store: Store, clock: FakeClock) -> None:
        registry = Registry(store)
        registry.announce(SESSION, "first")
        job = held(registry, "second")
        store.close()

        again = self.open_store(location, clock)

        assert again.get(job.job_id).claimant == job.claimant
        with pytest.raises(GenerationLost):
            again.claim(ClaimRequest(label=LABEL, owner="worker", agent_id=SESSION, generation_id="first"))
        assert [moved.job_id for moved in again.announce(SESSION, "third")] == [job.job_id]
        again.close()

    @pytest.mark.parametrize("acts", [1, 2, 8])
    def test_killed_at_any_moment_the_next_one_has_everything(self, live: Store, pool: RacePool, acts: int) -> None:
        jobs = register_jobs(Registry(live), 3)
        spoken: list[str] = []
        for turn in range(3):
            racer = pool.start(partial(tasks.be_reborn, name=f"life-{acts}-{turn}"))
            spoken += [racer.report() for _ in range(acts)]
            spoken += racer.kill()

            live.announce(SESSION, f"after-{acts}-{turn}")

            assert {live.get(job_id).status.value for job_id in jobs} == {"pending"}
            assert all(_is_refused(live, name) for name in spoken)
        check_no_return(live)
        check_journal(live)


def check_no_return(store: Store) -> None:
    """In the journal's order, the lives of the session follow each other: none claims or ends a job after the next."""
    holders: dict[str, str] = {}
    lives: list[str] = []
    for entry in store.entries(None):
        fields = entry.fields or {}
        if fields.get("claimant"):
            holders[entry.job_id] = fields["claimant"]["generation_id"]
            lives.append(holders[entry.job_id])
        elif fields.get("status") == "completed":
            lives.append(holders[entry.job_id])
    runs = [life for life, _ in groupby(lives)]
    assert len(runs) == len(set(runs)), f"an old generation came back: {runs}"


def _is_refused(store: Store, generation: str) -> bool:
    try:
        store.announce(SESSION, generation)
    except GenerationLost:
        return True
    return False
