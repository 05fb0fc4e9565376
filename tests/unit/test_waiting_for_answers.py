"""A process that waits for a person keeps its claim."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from mam import questions
from mam.jobs.question import Draft
from mam.jobs.question_acts import Answer
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.testing.clock import FakeClock
from tests.waiting import await_that

if TYPE_CHECKING:
    from mam.jobs.acts import Fence


def test_a_script_that_waits_renews_its_lease() -> None:
    """A person may take longer than the lease of a `pick`, which no worker renews."""
    clock = FakeClock()
    registry = Registry(MemoryStore(clock))
    registry.register(prompt="x", agent="shell")
    job = registry.pick("shell", owner="anna", lease_seconds=60)
    assert job is not None
    asked = questions.ask(registry, job.job_id, Draft(kind="question", text="Go on?"), attempt=1)
    with ThreadPoolExecutor(1) as pool:
        fence: Fence = {"attempt": 1, "claim_id": job.claim_id}
        waiter = pool.submit(questions.wait_for_answer, registry, asked, None, fence)
        for _ in range(3):
            clock.advance(40)
            registry.register(prompt="y", agent="other")  # wakes the waiter
            await_that(lambda: half_is_left(registry, job.job_id))
        known = asked.question
        given = Answer(number=1, attempt=1, digest=known.digest, answer="yes", by="anna@pc")
        questions.answer(registry, job.job_id, given)
        assert waiter.result().answer == "yes"
    assert registry.get(job.job_id).losses == 0


def half_is_left(registry: Registry, job_id: str) -> bool:
    lease = registry.get(job_id).lease
    assert lease is not None
    return lease.left_ms(registry.store.clock.now()) >= 30_000
