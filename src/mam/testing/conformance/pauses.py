"""What a pause holds back, and for how long; and secrets, which are kept beside the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.jobs.pause import Pause, draft_pause
from mam.jobs.usage_limit import PROBE_SECONDS, end_of_limit, limit_pause, wait_for_reset
from mam.stores.port import ClaimRequest
from mam.testing.conformance.base import StoreCase, pick_id, register_jobs, snapshot
from mam.testing.tasks import LABEL

if TYPE_CHECKING:
    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock


class Pauses(StoreCase):
    @pytest.mark.parametrize(
        "pause",
        [Pause(), Pause(agent="claude-code"), Pause(label=LABEL), Pause(agent="claude-code", label=LABEL)],
        ids=["everything", "agent", "label", "both"],
    )
    def test_nothing_that_is_paused_is_claimed_until_it_is_resumed(self, registry: Registry, pause: Pause) -> None:
        (job_id,) = register_jobs(registry)
        registry.pause(pause)
        assert pick_id(registry) is None
        assert "paused" in " ".join(registry.explain(job_id)[1])

        assert registry.resume(pause.agent, pause.label)

        assert pick_id(registry) == job_id
        assert not registry.resume(pause.agent, pause.label)

    @pytest.mark.parametrize(
        "pause", [Pause(agent="codex"), Pause(label="tmux:other"), Pause(agent="codex", label=LABEL)]
    )
    def test_a_pause_of_others_holds_nothing_back(self, registry: Registry, pause: Pause) -> None:
        (job_id,) = register_jobs(registry)
        registry.pause(pause)

        assert pick_id(registry) == job_id

    def test_jobs_of_an_agent_that_is_paused_are_passed_over(self, registry: Registry) -> None:
        register_jobs(registry, 30, agent="codex", priority=5)
        (low,) = register_jobs(registry, agent="shell", priority=-5)
        (other,) = register_jobs(registry, agent="human")
        (mine,) = register_jobs(registry, priority=1)
        registry.pause(Pause(agent="codex"))

        assert [pick_id(registry) for _ in range(4)] == [mine, other, low, None]

    def test_a_pause_ends_by_itself(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        (job_id,) = register_jobs(registry)
        now = clock.now()
        registry.pause(draft_pause("claude-code", None, now.wall_ms + 60_000, "usage limit", now))
        assert pick_id(registry) is None
        assert store.due_in() == pytest.approx(60)
        said = " ".join(registry.explain(job_id)[1])
        assert "usage limit" in said
        assert "in 1 min" in said

        clock.advance(61)

        assert store.due_in() is None
        assert pick_id(registry) == job_id

    def test_the_later_pause_of_the_same_kind_counts(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        register_jobs(registry)
        now = clock.now()
        registry.pause(draft_pause(None, LABEL, now.wall_ms + 60_000, None, now))
        registry.pause(draft_pause(None, LABEL, None, "for good", now))
        clock.advance(61)

        assert pick_id(registry) is None
        assert [(one.label, one.until, one.reason) for one in store.pauses()] == [(LABEL, None, "for good")]

    def test_a_limits_pause_lets_one_job_through_before_all_others(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        """Also before those of a higher priority. The pause names the job that is tried, so every claim finds it."""
        register_jobs(registry, 3, priority=5)
        (tried,) = register_jobs(registry, priority=-5)
        (other,) = register_jobs(registry, agent="codex")
        now = clock.now()
        pause = limit_pause(store.pauses(), store.get(tried), now.wall_ms + 1000, "limit", now)
        assert pause is not None
        registry.pause(pause)
        assert store.pauses() == [pause]

        assert [pick_id(registry) for _ in range(3)] == [tried, other, None]
        (again,) = register_jobs(registry)
        assert pick_id(registry) is None

        registry.release(tried)
        assert pick_id(registry) == tried
        assert registry.resume("claude-code", None)
        assert pick_id(registry) not in (None, again)

    def test_the_probe_of_a_pause_waits_for_its_own_time(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        (tried,) = register_jobs(registry)
        (other,) = register_jobs(registry)
        job = registry.pick(LABEL, owner="worker")
        assert job is not None
        now = clock.now()
        until = end_of_limit(now.wall_ms + 60_000, 0, now)
        pause = limit_pause(store.pauses(), job, until, "limit", now)
        assert pause is not None
        registry.pause(pause)
        run = {"attempt": 1}
        registry.act(
            tried, "limited",
            lambda found, moment: wait_for_reset(found, moment, attempt=1, until_ms=until, reason="limit", run=run),
        )  # fmt: skip
        assert pick_id(registry) is None
        assert store.get(tried).waiting_for == "reset"
        assert (store.get(tried).retries, store.get(tried).losses) == (0, 0)

        clock.advance(62)
        assert pick_id(registry) == tried
        assert pick_id(registry) is None
        clock.advance(PROBE_SECONDS)
        assert pick_id(registry) in (tried, other)

    def test_a_job_that_is_wanted_by_name_is_held_back_by_a_limit_of_others(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        (tried,), (other,) = register_jobs(registry), register_jobs(registry)
        now = clock.now()
        pause = limit_pause((), store.get(tried), now.wall_ms + 1000, "limit", now)
        assert pause is not None
        registry.pause(pause)

        assert registry.claim(ClaimRequest(label=LABEL, owner="w", job_id=other)) is None
        claimed = registry.claim(ClaimRequest(label=LABEL, owner="w", job_id=tried))
        assert claimed is not None
        assert claimed.job_id == tried

    def test_a_paused_label_also_blocks_the_job_that_probes_a_limit(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        (tried,) = register_jobs(registry)
        now = clock.now()
        pause = limit_pause((), store.get(tried), now.wall_ms + 1000, "limit", now)
        assert pause is not None
        registry.pause(pause)
        registry.pause(Pause(label=LABEL))

        assert pick_id(registry) is None

    def test_pauses_are_no_part_of_any_job(self, registry: Registry, store: Store) -> None:
        register_jobs(registry)
        before = snapshot(store)

        registry.pause(Pause(agent="claude-code"))
        registry.resume("claude-code", None)

        assert snapshot(store) == before

    def test_running_jobs_continue(self, registry: Registry) -> None:
        (job_id,) = register_jobs(registry)
        job = registry.pick(LABEL, owner="worker")
        assert job is not None
        registry.pause(Pause())

        assert registry.heartbeat(job_id, attempt=job.attempt).status == "running"
        assert registry.complete(job_id, attempt=job.attempt).status == "completed"

    def test_secrets_are_kept_by_job_and_by_name(self, store: Store) -> None:
        store.keep_secrets("one", {"auth_token": "a"})
        store.keep_secrets("two", {"auth_token": "b"})
        store.keep_secrets("one", {"broker_password": "c"})

        assert store.secrets("one") == {"auth_token": "a", "broker_password": "c"}
        assert store.secrets("two") == {"auth_token": "b"}
        assert store.secrets("three") == {}
