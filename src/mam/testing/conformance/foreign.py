"""For stores whose records other programs can write: what they write takes effect only when the user adopts it.

A store that lives in files adds this to its class and says how such a program writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import ClaimLost
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.port import Query
from mam.testing.conformance.base import (
    StoreCase,
    check_journal,
    history_lines,
    register_and_claim,
    register_jobs,
    snapshot,
    terminal_events,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.stores.port import Store

    Json = dict[str, Any]

SEED = (
    "schema_version", "job_id", "status", "created_at", "updated_at", "prompt", "agent", "agent_session", "broker",
    "topic_prefix", "timeout_sec", "idle_timeout_sec", "expected_artifacts", "last_seq", "auth_token",
)  # fmt: skip
"""The fields that an old script knows; it drops all others when it writes a record back."""


class ForeignWrites(StoreCase):
    """Mixed into a store's test class beside `StoreConformance`."""

    def read_record(self, location: str, job_id: str) -> Json:
        """The record as another program finds it."""
        raise NotImplementedError

    def write_record(self, location: str, job_id: str, fields: Json) -> None:
        """Another program puts a whole record in its place, atomically, without asking mam."""
        raise NotImplementedError

    def remove_record(self, location: str, job_id: str) -> None:
        raise NotImplementedError

    def adopt(self, store: Store, job_id: str) -> str:
        """The user adopts what another program wrote of this job; the outcome in a word."""
        raise NotImplementedError

    @pytest.fixture
    def rewrite(self, location: str) -> Callable[..., None]:
        """As an old script updates: load, change, drop what it does not know, replace."""

        def rewrite(job_id: str, **changes: Any) -> None:
            known = {name: value for name, value in self.read_record(location, job_id).items() if name in SEED}
            self.write_record(location, job_id, {**known, **changes})

        return rewrite

    def test_a_record_that_another_program_adds_is_not_claimed_until_it_is_adopted(
        self, location: str, registry: Registry, store: Store
    ) -> None:
        (model,) = register_jobs(registry)
        fields = {name: value for name, value in self.read_record(location, model).items() if name in SEED}
        self.write_record(location, "foreign1", {**fields, "job_id": "foreign1", "agent_session": "theirs"})
        before = snapshot(store)

        assert registry.pick("theirs", owner="worker") is None
        assert [problem.file for problem in store.problems()] == ["foreign1.json"]
        assert snapshot(store) == before

        assert self.adopt(store, "foreign1") == "new"
        job = registry.pick("theirs", owner="worker")
        assert job is not None
        assert (job.job_id, job.attempt, job.number) == ("foreign1", 1, 2)
        assert store.problems() == []

    def test_a_record_that_another_program_removes_is_reported_and_written_again(
        self, location: str, registry: Registry, store: Store
    ) -> None:
        (job_id,) = register_jobs(registry)
        record = self.read_record(location, job_id)
        self.remove_record(location, job_id)

        assert [job.job_id for job in registry.select(Query())] == [job_id]
        assert len(store.problems()) == 1

        assert self.adopt(store, job_id) == "written again"
        assert self.read_record(location, job_id) == record

    def test_dropped_fields_are_restored_and_the_holder_keeps_its_claim(
        self, registry: Registry, store: Store, rewrite: Callable[..., None]
    ) -> None:
        job = register_and_claim(registry, priority=7)
        rewrite(job.job_id, prompt="other words")
        assert registry.get(job.job_id) == job

        assert self.adopt(store, job.job_id) == "changed"
        after = registry.get(job.job_id)
        assert (after.attempt, after.lease, after.owner, after.priority) == (1, job.lease, job.owner, 7)
        assert (after.prompt, after.claim_id) == ("other words", job.claim_id)
        assert registry.complete(job.job_id, attempt=1).status is Status.COMPLETED
        check_journal(registry.store)

    def test_what_was_not_adopted_is_kept_aside_when_mam_writes_the_job(
        self, location: str, registry: Registry, store: Store, rewrite: Callable[..., None]
    ) -> None:
        job = register_and_claim(registry)
        rewrite(job.job_id, prompt="other words")
        registry.complete(job.job_id, attempt=1)

        assert self.read_record(location, job.job_id)["prompt"] == job.prompt
        assert store.problems() == []

    def test_a_claim_by_hand_is_a_claim(self, registry: Registry, store: Store, rewrite: Callable[..., None]) -> None:
        (job_id,) = register_jobs(registry)
        rewrite(job_id, status="running", claim_id="forged")
        self.adopt(store, job_id)
        job = registry.get(job_id)
        assert (job.status, job.attempt, job.owner) == (Status.RUNNING, 1, "manual")
        assert job.lease is not None
        assert job.claim_id not in (None, "forged")

    def test_an_end_by_hand_is_unfenced_and_has_one_terminal_event(
        self, registry: Registry, store: Store, rewrite: Callable[..., None]
    ) -> None:
        job = register_and_claim(registry)
        rewrite(job.job_id, status="completed")
        self.adopt(store, job.job_id)
        assert registry.get(job.job_id).status is Status.COMPLETED
        assert terminal_events(store, job.job_id) == [("completed", "completed")]
        assert history_lines(store, job.job_id)[-2]["unfenced"] is True
        with pytest.raises(ClaimLost):
            registry.complete(job.job_id, attempt=1)

    def test_an_illegal_move_keeps_the_status_and_is_reported(
        self, registry: Registry, store: Store, rewrite: Callable[..., None]
    ) -> None:
        (job_id,) = register_jobs(registry)
        registry.cancel(job_id)
        rewrite(job_id, status="running")
        assert len(store.problems()) == 1

        assert self.adopt(store, job_id) == "refused"
        assert registry.get(job_id).status is Status.CANCELLED
        check_journal(store)

    def test_numbers_that_it_took_are_marked_and_never_given_again(
        self, registry: Registry, store: Store, rewrite: Callable[..., None]
    ) -> None:
        job = register_and_claim(registry)
        rewrite(job.job_id, last_seq=4)
        self.adopt(store, job.job_id)
        assert registry.next_seq(job.job_id) == 5
        rewrite(job.job_id, last_seq=1)
        self.adopt(store, job.job_id)
        assert registry.next_seq(job.job_id) == 6
        check_journal(store)
