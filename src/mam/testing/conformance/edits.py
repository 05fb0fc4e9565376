"""Editing a job that no worker has claimed, and the fence against a claim in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import Refused
from mam.jobs.edit import Edit
from mam.testing.conformance.base import (
    StoreCase,
    check_journal,
    history_lines,
    job_in_status,
    pick_id,
    register_and_claim,
    register_jobs,
    snapshot,
)
from mam.testing.tasks import LABEL

if TYPE_CHECKING:
    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock

BY = "anna@laptop"


class Edits(StoreCase):
    def test_prompt_label_and_priority_change_what_is_claimed(self, registry: Registry, store: Store) -> None:
        first, second = register_jobs(registry, 2)

        registry.edit(second, Edit(prompt="sort twenty", priority=5), by=BY)
        registry.edit(first, Edit(label="tmux:other"), by=BY)

        assert store.get(second).prompt == "sort twenty"
        assert [pick_id(registry), pick_id(registry)] == [second, None]
        assert pick_id(registry, "tmux:other") == first
        check_journal(store)

    def test_the_audit_line_holds_the_values_before_and_after(self, registry: Registry, store: Store) -> None:
        (job_id,) = register_jobs(registry)
        registry.edit(job_id, Edit(prompt="sort twenty", label=LABEL, priority=5), by=BY)

        (line,) = [line for line in history_lines(store, job_id) if line["event"] == "edited"]

        assert line["by"] == BY
        assert line["before"] == {"prompt": "sort ten numbers", "priority": 0}
        assert line["after"] == {"prompt": "sort twenty", "priority": 5}

    def test_a_start_time_can_be_set_moved_and_removed(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        (job_id,) = register_jobs(registry)
        now = clock.now().wall_ms
        assert registry.edit(job_id, Edit(due_ms=now + 60_000), by=BY).status == "waiting"
        registry.edit(job_id, Edit(due_ms=now + 120_000), by=BY)
        clock.advance(61)
        assert pick_id(registry) is None

        assert registry.edit(job_id, Edit(due_ms=now), by=BY).status == "pending"

        assert (store.get(job_id).waiting_for, store.get(job_id).due_at) == (None, None)
        assert pick_id(registry) == job_id

    def test_priority_decides_among_jobs_of_an_exclusive_key(self, registry: Registry) -> None:
        _, second = register_jobs(registry, 2, exclusive="gpu")

        registry.edit(second, Edit(priority=1), by=BY)

        assert pick_id(registry) == second

    @pytest.mark.parametrize("status", ["running", "completed", "error", "cancelled"])
    def test_a_job_that_is_claimed_or_has_ended_stays_as_it_is(
        self, registry: Registry, store: Store, status: str
    ) -> None:
        job = job_in_status(registry, status)
        before = snapshot(store)

        with pytest.raises(Refused, match="no worker has claimed"):
            registry.edit(job.job_id, Edit(prompt="another"), by=BY)

        assert snapshot(store) == before

    def test_a_claim_in_between_rejects_the_edit(self, registry: Registry, store: Store) -> None:
        (job_id,) = register_jobs(registry)
        seen = store.get(job_id)
        held = registry.pick(LABEL, owner="worker")
        assert held is not None
        registry.release(job_id, attempt=held.attempt)

        with pytest.raises(Refused, match="changed while you edited it"):
            registry.edit(job_id, Edit(prompt="another"), by=BY, seen=seen)

        assert store.get(job_id).prompt == "sort ten numbers"

    def test_an_edit_without_a_difference_writes_nothing(self, registry: Registry, store: Store) -> None:
        (job_id,) = register_jobs(registry)
        before = snapshot(store)

        registry.edit(job_id, Edit(prompt="sort ten numbers", priority=0), by=BY)

        assert snapshot(store) == before

    def test_a_job_that_waits_for_another_keeps_its_start(self, registry: Registry, clock: FakeClock) -> None:
        needed = register_and_claim(registry).job_id
        (job_id,) = register_jobs(registry, after=[needed])
        with pytest.raises(Refused, match="waits for dependency"):
            registry.edit(job_id, Edit(due_ms=clock.now().wall_ms + 1000), by=BY)
        assert registry.edit(job_id, Edit(prompt="another"), by=BY).waiting_for == "dependency"
