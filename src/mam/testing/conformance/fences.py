"""A writer that no longer holds the job changes nothing, however it lost it and whatever it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import ClaimLost
from mam.jobs.status import Status
from mam.testing.conformance.base import StoreCase, claim_again, claimed, everything, picked

if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock

    Write = Callable[[Registry, str, int], Job]

WRITES: dict[str, Write] = {
    "heartbeat": lambda registry, job, attempt: registry.heartbeat(job, attempt=attempt),
    "complete": lambda registry, job, attempt: registry.complete(job, attempt=attempt, result="late"),
    "fail": lambda registry, job, attempt: registry.fail(job, attempt=attempt, reason="late"),
    "fail_retryable": lambda registry, job, attempt: registry.fail(job, attempt=attempt, reason="late", retryable=True),
    "release": lambda registry, job, attempt: registry.release(job, attempt=attempt),
    "cancel": lambda registry, job, attempt: registry.cancel(job, attempt=attempt),
    "set_running": lambda registry, job, attempt: registry.set_status(job, Status.RUNNING, attempt=attempt),
    "set_completed": lambda registry, job, attempt: registry.set_status(job, Status.COMPLETED, attempt=attempt),
    "set_error": lambda registry, job, attempt: registry.set_status(job, Status.ERROR, attempt=attempt),
    "set_cancelled": lambda registry, job, attempt: registry.set_status(job, Status.CANCELLED, attempt=attempt),
    "set_pending": lambda registry, job, attempt: registry.set_status(job, Status.PENDING, attempt=attempt),
    "publish_started": lambda registry, job, attempt: registry.publish(job, event="started", attempt=attempt),
    "publish_permission": lambda registry, job, attempt: registry.publish(
        job, event="permission_required", attempt=attempt
    ),
    "publish_progress": lambda registry, job, attempt: registry.publish(job, event="progress", attempt=attempt),
    "publish_completed": lambda registry, job, attempt: registry.publish(job, event="completed", attempt=attempt),
    "publish_error": lambda registry, job, attempt: registry.publish(job, event="error", attempt=attempt),
}

ENDINGS: dict[str, list[str]] = {
    "complete": ["complete", "set_completed", "publish_completed"],
    "set_completed": ["complete", "set_completed", "publish_completed"],
    "publish_completed": ["complete", "set_completed", "publish_completed"],
    "fail": ["fail", "fail_retryable", "set_error", "publish_error"],
    "set_error": ["fail", "fail_retryable", "set_error", "publish_error"],
    "publish_error": ["fail", "fail_retryable", "set_error", "publish_error"],
    "cancel": ["cancel", "set_cancelled"],
}
"""By each write that ends a job: the writes that say the same."""


class Fences(StoreCase):
    @pytest.mark.parametrize("write", WRITES)
    def test_after_a_takeover_the_old_attempt_is_refused(
        self, registry: Registry, store: Store, clock: FakeClock, write: str
    ) -> None:
        job = claimed(registry, lease_seconds=60)
        clock.advance(61)
        claim_again(registry, job.job_id, lease_seconds=60)

        _refused(registry, store, write, job.job_id, 1)

    @pytest.mark.parametrize("write", WRITES)
    def test_after_a_sweep_the_old_attempt_is_refused(
        self, registry: Registry, store: Store, clock: FakeClock, write: str
    ) -> None:
        job = claimed(registry, lease_seconds=60)
        clock.advance(61)
        registry.sweep()

        _refused(registry, store, write, job.job_id, 1)

    @pytest.mark.parametrize("write", WRITES)
    def test_after_the_last_loss_the_old_attempt_is_refused(
        self, registry: Registry, store: Store, clock: FakeClock, write: str
    ) -> None:
        job = claimed(registry, lease_seconds=60)
        for _ in range(2):
            clock.advance(61)
            claim_again(registry, job.job_id, lease_seconds=60)
        clock.advance(61)
        registry.sweep()
        assert registry.get(job.job_id).status == "error"

        _refused(registry, store, write, job.job_id, 3)

    @pytest.mark.parametrize("write", WRITES)
    def test_after_a_cancel_the_old_attempt_is_refused(self, registry: Registry, store: Store, write: str) -> None:
        job = claimed(registry)
        registry.cancel(job.job_id)

        _refused(registry, store, write, job.job_id, 1)

    @pytest.mark.parametrize("write", WRITES)
    def test_after_a_release_the_old_attempt_is_refused(self, registry: Registry, store: Store, write: str) -> None:
        job = claimed(registry)
        registry.release(job.job_id, attempt=1)

        _refused(registry, store, write, job.job_id, 1)

    @pytest.mark.parametrize("write", WRITES)
    def test_while_a_retry_waits_the_old_attempt_is_refused(self, registry: Registry, store: Store, write: str) -> None:
        job = claimed(registry)
        registry.fail(job.job_id, attempt=1, reason="no luck", retryable=True)

        _refused(registry, store, write, job.job_id, 1)

    @pytest.mark.parametrize("write", WRITES)
    def test_an_attempt_that_never_was_is_refused(self, registry: Registry, store: Store, write: str) -> None:
        job = claimed(registry)

        for attempt in (0, 2, 2**53):
            _refused(registry, store, write, job.job_id, attempt)

    @pytest.mark.parametrize("ending", ENDINGS)
    @pytest.mark.parametrize("write", WRITES)
    def test_only_the_write_that_ended_the_job_may_come_again(
        self, registry: Registry, store: Store, ending: str, write: str
    ) -> None:
        job = claimed(registry)
        WRITES[ending](registry, job.job_id, 1)

        if write not in ENDINGS[ending]:
            _refused(registry, store, write, job.job_id, 1)
        else:
            before = everything(store)
            assert WRITES[write](registry, job.job_id, 1) == registry.get(job.job_id)
            assert everything(store) == before

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_who_lost_the_job_cannot_repeat_what_its_successor_did(
        self, registry: Registry, store: Store, clock: FakeClock, ending: str
    ) -> None:
        job = claimed(registry, lease_seconds=60)
        clock.advance(61)
        claim_again(registry, job.job_id)
        WRITES[ending](registry, job.job_id, 2)

        _refused(registry, store, ending, job.job_id, 1)

    @pytest.mark.parametrize("write", WRITES)
    def test_an_expired_lease_alone_revokes_nothing(self, registry: Registry, clock: FakeClock, write: str) -> None:
        job = claimed(registry, lease_seconds=60)
        clock.advance(3600)

        WRITES[write](registry, job.job_id, 1)

    def test_a_heartbeat_after_expiry_keeps_the_job(self, registry: Registry, clock: FakeClock) -> None:
        job = claimed(registry, lease_seconds=60)
        clock.advance(61)
        registry.heartbeat(job.job_id, attempt=1)

        assert picked(registry) is None
        assert registry.get(job.job_id).losses == 0


def _refused(registry: Registry, store: Store, write: str, job_id: str, attempt: int) -> None:
    before = everything(store)

    with pytest.raises(ClaimLost, match=job_id) as refused:
        WRITES[write](registry, job_id, attempt)

    assert refused.value.exit_code == 4
    assert everything(store) == before
