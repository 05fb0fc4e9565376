"""A writer that no longer holds the job changes nothing, however it lost it and whatever it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import BadInput, ClaimLost
from mam.jobs import acts
from mam.jobs.status import Status
from mam.stores.port import ClaimRequest
from mam.testing.conformance.base import (
    StoreCase,
    cancel_unless_ended,
    claim_again,
    pick_id,
    register_and_claim,
    register_jobs,
    snapshot,
)
from mam.testing.tasks import LABEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.acts import Fence
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock

    Write = Callable[[Registry, str, Fence], Job]

OTHER = "another-claim_0"

WRITES: dict[str, Write] = {
    "heartbeat": lambda registry, job, fence: registry.heartbeat(job, **fence),
    "complete": lambda registry, job, fence: registry.complete(job, **fence, result="late"),
    "fail": lambda registry, job, fence: registry.fail(job, **fence, reason="late"),
    "fail_retryable": lambda registry, job, fence: registry.fail(job, **fence, reason="late", retryable=True),
    "release": lambda registry, job, fence: registry.release(job, **fence),
    "cancel": lambda registry, job, fence: registry.cancel(job, **fence),
    "set_running": lambda registry, job, fence: registry.set_status(job, Status.RUNNING, **fence),
    "set_completed": lambda registry, job, fence: registry.set_status(job, Status.COMPLETED, **fence),
    "set_error": lambda registry, job, fence: registry.set_status(job, Status.ERROR, **fence),
    "set_cancelled": lambda registry, job, fence: registry.set_status(job, Status.CANCELLED, **fence),
    "set_pending": lambda registry, job, fence: registry.set_status(job, Status.PENDING, **fence),
    "publish_started": lambda registry, job, fence: registry.publish(job, event="started", **fence),
    "publish_permission": lambda registry, job, fence: registry.publish(job, event="permission_required", **fence),
    "publish_progress": lambda registry, job, fence: registry.publish(job, event="progress", **fence),
    "publish_completed": lambda registry, job, fence: registry.publish(job, event="completed", **fence),
    "publish_error": lambda registry, job, fence: registry.publish(job, event="error", **fence),
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
    def test_after_a_takeover_the_old_attempt_is_refused(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        job = register_and_claim(registry, lease_seconds=60)
        clock.advance(61)
        claim_again(registry, job.job_id, lease_seconds=60)

        _refuses_all(registry, store, job.job_id, 1, "attempt 2 has taken over")

    def test_after_a_sweep_the_old_attempt_is_refused(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        job = register_and_claim(registry, lease_seconds=60)
        clock.advance(61)
        registry.sweep()

        _refuses_all(registry, store, job.job_id, 1, "the job is pending")

    def test_after_the_last_loss_the_old_attempt_is_refused(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        job = register_and_claim(registry, lease_seconds=60)
        for _ in range(2):
            clock.advance(61)
            claim_again(registry, job.job_id, lease_seconds=60)
        clock.advance(61)
        registry.sweep()

        _refuses_all(registry, store, job.job_id, 3, "the job is error")

    def test_after_a_cancel_the_old_attempt_is_refused(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        registry.cancel(job.job_id)

        _refuses_all(registry, store, job.job_id, 1, "the job is cancelled")

    def test_after_a_release_the_old_attempt_is_refused(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        registry.release(job.job_id, attempt=1)

        _refuses_all(registry, store, job.job_id, 1, "the job is pending")

    def test_while_a_retry_waits_the_old_attempt_is_refused(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        registry.fail(job.job_id, attempt=1, reason="no luck", retryable=True)

        _refuses_all(registry, store, job.job_id, 1, "the job is waiting")

    @pytest.mark.parametrize("attempt", [0, 2, 2**53])
    def test_an_attempt_that_never_was_is_refused(self, registry: Registry, store: Store, attempt: int) -> None:
        job = register_and_claim(registry)

        _refuses_all(registry, store, job.job_id, attempt, "attempt")

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_only_the_write_that_ended_the_job_may_come_again(
        self, registry: Registry, store: Store, ending: str
    ) -> None:
        job = register_and_claim(registry)
        ended = WRITES[ending](registry, job.job_id, _of(job))
        before = snapshot(store)

        for again in ENDINGS[ending]:
            for fence in (_of(job), _number(1)):
                assert WRITES[again](registry, job.job_id, fence) == ended, again
        assert snapshot(store) == before
        for other in WRITES.keys() - set(ENDINGS[ending]):
            _refused(registry, store, other, job.job_id, _of(job), f"the job is {ended.status}")

    def test_an_earlier_attempt_cannot_repeat_the_end_by_a_later_one(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        for ending in ENDINGS:
            job = register_and_claim(registry, lease_seconds=60)
            clock.advance(61)
            claim_again(registry, job.job_id)
            WRITES[ending](registry, job.job_id, _number(2))

            _refused(registry, store, ending, job.job_id, _of(job), "attempt 2 has taken over")

    def test_an_expired_lease_alone_revokes_nothing(self, registry: Registry, clock: FakeClock) -> None:
        """Whether the writer gives the attempt alone, or the claim id with it."""
        for write in WRITES.values():
            for is_by_claim in (True, False):
                job = register_and_claim(registry, lease_seconds=60)
                clock.advance(3600)

                write(registry, job.job_id, _of(job) if is_by_claim else _number(job.attempt))
                cancel_unless_ended(registry, job.job_id)

    def test_a_heartbeat_after_expiry_keeps_the_job(self, registry: Registry, clock: FakeClock) -> None:
        job = register_and_claim(registry, lease_seconds=60)
        clock.advance(61)
        registry.heartbeat(job.job_id, attempt=1)

        assert pick_id(registry) is None
        assert registry.get(job.job_id).losses == 0

    # -- the claim id ------------------------------------------------------------------------------------------------

    def test_another_claim_of_the_same_attempt_is_refused(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)

        for write in WRITES:
            _refused(registry, store, write, job.job_id, _other(job), "another claim holds attempt 1")

    def test_another_claim_cannot_repeat_the_end(self, registry: Registry, store: Store) -> None:
        for ending, repetitions in ENDINGS.items():
            job = register_and_claim(registry)
            WRITES[ending](registry, job.job_id, _number(1))

            for again in repetitions:
                why = "another claim of attempt 1 has ended the job"
                _refused(registry, store, again, job.job_id, _other(job), why)

    def test_the_claim_id_of_the_request_is_used(self, registry: Registry, store: Store) -> None:
        (job_id,) = register_jobs(registry)
        job = store.claim(ClaimRequest(label=LABEL, owner="worker", claim_id="my-own_claim"))

        assert job is not None
        assert (job.job_id, job.claim_id, store.get(job_id).claim_id) == (job_id, "my-own_claim", "my-own_claim")

    def test_each_claim_has_an_id_of_its_own_however_it_is_made(self, registry: Registry, store: Store) -> None:
        by_hand: list[Callable[[str], Job]] = [
            lambda job: registry.set_status(job, Status.RUNNING),
            lambda job: registry.publish(job, event="started"),
            lambda job: registry.complete(job),
            lambda job: registry.set_status(job, Status.COMPLETED),
            lambda job: registry.publish(job, event="completed"),
            lambda job: registry.fail(job, reason="no luck", retryable=True),
        ]
        jobs = [act(job_id) for act, job_id in zip(by_hand, register_jobs(registry, len(by_hand)), strict=True)]
        jobs.append(register_and_claim(registry))
        registry.release(jobs[-1].job_id)
        jobs.append(claim_again(registry, jobs[-1].job_id))

        ids = [job.claim_id for job in jobs]
        assert None not in ids
        assert len({*ids}) == len(ids)
        assert store.get(jobs[0].job_id).claim_id == ids[0]
        assert registry.heartbeat(jobs[0].job_id, attempt=1, claim_id=ids[0]).status == "running"

    def test_a_claim_without_an_id_is_fenced_by_its_number(self, registry: Registry, store: Store) -> None:
        """As an older version made them."""
        (job_id,) = register_jobs(registry)
        store.change(job_id, lambda job, now: acts.claim(job, now, "worker", 60))

        assert registry.heartbeat(job_id, attempt=1, claim_id=OTHER).claim_id is None
        registry.release(job_id, attempt=1, claim_id=OTHER)
        assert claim_again(registry, job_id).claim_id is not None
        _refused(registry, store, "complete", job_id, {"attempt": 2, "claim_id": OTHER}, "another claim")

    def test_a_claim_id_that_cannot_be_one_is_bad_input(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        before = snapshot(store)

        for claim_id in ("", "a b", "x" * 65, "é", "a\n"):
            for write in WRITES.values():
                with pytest.raises(BadInput, match="claim id"):
                    write(registry, job.job_id, {"attempt": 1, "claim_id": claim_id})
            with pytest.raises(BadInput, match="claim id"):
                registry.claim(ClaimRequest(label=LABEL, owner="worker", claim_id=claim_id))
        with pytest.raises(BadInput, match="attempt"):
            registry.complete(job.job_id, claim_id=job.claim_id)
        assert snapshot(store) == before


def _of(job: Job) -> Fence:
    return {"attempt": job.attempt, "claim_id": job.claim_id}


def _other(job: Job) -> Fence:
    return {"attempt": job.attempt, "claim_id": OTHER}


def _number(attempt: int) -> Fence:
    return {"attempt": attempt, "claim_id": None}


def _refuses_all(registry: Registry, store: Store, job_id: str, attempt: int, why: str) -> None:
    for write in WRITES:
        _refused(registry, store, write, job_id, _number(attempt), why)


def _refused(registry: Registry, store: Store, write: str, job_id: str, fence: Fence, why: str) -> None:
    before = snapshot(store)

    with pytest.raises(ClaimLost, match=job_id) as refused:
        WRITES[write](registry, job_id, fence)

    assert refused.value.exit_code == 4
    assert why in str(refused.value), write
    assert snapshot(store) == before, write
