"""At most one job of a key runs at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import Refused
from mam.jobs.pause import Pause
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.port import Query
from mam.testing import tasks
from mam.testing.conformance.base import StoreCase, check_journal, pick_id, register_jobs, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.record import Job
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock
    from mam.testing.races import RacePool


class Exclusive(StoreCase):
    def test_the_second_of_a_key_is_passed_over_while_the_first_runs(self, registry: Registry, store: Store) -> None:
        first, second = register_jobs(registry, 2, exclusive="gpu")
        (free,) = register_jobs(registry)

        assert [pick_id(registry) for _ in range(3)] == [first, free, None]
        assert store.holder("gpu") == first
        registry.complete(first)
        assert store.holder("gpu") is None
        assert pick_id(registry) == second

    @pytest.mark.parametrize("way", ["complete", "fail", "cancel", "release", "retry later", "lost"])
    def test_every_end_of_the_holder_frees_the_key(
        self, registry: Registry, store: Store, clock: FakeClock, way: str
    ) -> None:
        first, second = register_jobs(registry, 2, exclusive="gpu")
        assert pick_id(registry) == first
        if way == "lost":
            clock.advance(3601)
        else:
            ways: dict[str, Callable[[], Job]] = {
                "complete": lambda: registry.complete(first),
                "fail": lambda: registry.fail(first, reason="broken"),
                "cancel": lambda: registry.cancel(first),
                "release": lambda: registry.release(first),
                "retry later": lambda: registry.fail(first, reason="flaky", retryable=True),
            }
            ways[way]()

        assert pick_id(registry) == (first if way in ("release", "lost") else second)
        assert pick_id(registry) is None
        check_journal(store)

    def test_one_whose_agent_is_paused_keeps_back_none_of_another_agent(self, registry: Registry, store: Store) -> None:
        held, behind = register_jobs(registry, 2, exclusive="gpu", agent="codex")
        first, second = register_jobs(registry, 2, exclusive="gpu", agent="opencode")
        registry.pause(Pause(agent="codex"))

        assert [pick_id(registry) for _ in range(2)] == [first, None]
        registry.complete(first)
        assert pick_id(registry) == second
        registry.release(second)
        registry.resume("codex", None)
        assert [pick_id(registry) for _ in range(2)] == [held, None]
        registry.complete(held)
        assert pick_id(registry) == behind
        check_journal(store)

    def test_the_first_job_of_a_key_is_first_whatever_its_agent(self, registry: Registry) -> None:
        (last,) = register_jobs(registry, exclusive="gpu", agent="a", priority=-1)
        (first,) = register_jobs(registry, exclusive="gpu", agent="b", priority=1)
        (second,) = register_jobs(registry, exclusive="gpu", agent="a")
        for job in (first, second, last):
            assert [pick_id(registry) for _ in range(2)] == [job, None]
            registry.complete(job)

    def test_a_key_counts_across_labels(self, registry: Registry) -> None:
        (mine,) = register_jobs(registry, exclusive="gpu")
        (other,) = register_jobs(registry, exclusive="gpu", label="other")
        assert pick_id(registry, "other") == other
        assert pick_id(registry) is None

        registry.complete(other)

        assert pick_id(registry) == mine

    def test_each_key_is_its_own(self, registry: Registry) -> None:
        first, _second = register_jobs(registry, 2, exclusive="gpu")
        (other,) = register_jobs(registry, exclusive="GPU")

        assert [pick_id(registry) for _ in range(3)] == [first, other, None]

    def test_the_order_of_a_key_is_the_order_of_claims(self, registry: Registry) -> None:
        normal = register_jobs(registry, 3, exclusive="gpu")
        (urgent,) = register_jobs(registry, exclusive="gpu", priority=9)
        order = []
        while (job_id := pick_id(registry)) is not None:
            order.append(job_id)
            registry.complete(job_id)

        assert order == [urgent, *normal]

    @pytest.mark.parametrize("way", ["set", "publish"])
    def test_a_second_job_of_a_key_cannot_be_set_to_running(self, registry: Registry, store: Store, way: str) -> None:
        first, second = register_jobs(registry, 2, exclusive="gpu")
        assert pick_id(registry) == first
        before = snapshot(store)

        ways = {
            "set": lambda: registry.set_status(second, Status.RUNNING),
            "publish": lambda: registry.publish(second, event="started"),
        }
        with pytest.raises(Refused, match=first):
            ways[way]()

        assert snapshot(store) == before

    def test_work_done_by_hand_can_be_completed(self, registry: Registry) -> None:
        first, second = register_jobs(registry, 2, exclusive="gpu")
        assert pick_id(registry) == first

        assert registry.complete(second).status is Status.COMPLETED

    def test_explain_names_the_holder_of_its_key(self, registry: Registry) -> None:
        first, second = register_jobs(registry, 2, exclusive="gpu")
        assert pick_id(registry) == first

        assert f"Job {first} runs under the same exclusive key 'gpu'" in " ".join(registry.explain(second)[1])
        assert "exclusive" not in " ".join(registry.explain(first)[1])

    def test_a_key_that_waits_for_its_start_time_or_for_another_blocks_no_job(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        (later,) = register_jobs(registry, exclusive="gpu", due_ms=clock.now().wall_ms + 60_000)
        (now,) = register_jobs(registry, exclusive="gpu")
        assert pick_id(registry) == now
        clock.advance(61)
        assert pick_id(registry) is None

        registry.complete(now)

        assert pick_id(registry) == later

    def test_many_claimers_never_run_two_of_one_key(self, live: Store, pool: RacePool) -> None:
        jobs = [job for key in ("a", "b") for job in register_jobs(Registry(live), 20, exclusive=key)]

        claimed = pool.race([tasks.finish_all] * 4)

        assert sorted(job for done in claimed for job in done) == sorted(jobs)
        assert {job.status for job in live.select(Query())} == {Status.COMPLETED}
        assert most_running_at_once(live) == {"a": 1, "b": 1}


def most_running_at_once(store: Store) -> dict[str, int]:
    """For each key the highest number of jobs that the journal shows running together."""
    keys = {job.job_id: str(job.exclusive) for job in store.select(Query())}
    running: dict[str, set[str]] = {key: set() for key in keys.values()}
    most = dict.fromkeys(running, 0)
    for entry in store.entries(None):
        here = running[keys[entry.job_id]]
        if "status" in (entry.fields or {}):
            (here.add if entry.fields["status"] == "running" else here.discard)(entry.job_id)  # type: ignore[index]
        most[keys[entry.job_id]] = max(most[keys[entry.job_id]], len(here))
    return most
