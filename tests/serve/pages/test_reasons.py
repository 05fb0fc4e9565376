"""Why a job of a list does not run, in one sentence."""

from __future__ import annotations

from mam import questions
from mam.access.reading import AuthorizedReading
from mam.access.viewer import local_viewer
from mam.jobs.lease import new_lease
from mam.jobs.question import Draft
from mam.jobs.workers import WorkerEntry
from mam.registry import Registry
from mam.serve.pages.when_idle import reason_of
from mam.stores.memory import MemoryStore
from mam.testing.clock import FakeClock


def test_a_worker_without_a_free_place_is_named_as_full() -> None:
    registry = Registry(MemoryStore(FakeClock()))
    reading, now = AuthorizedReading(registry, local_viewer("anna")), registry.store.clock.now()
    entry = WorkerEntry(
        name="w", owner="w", host="forge", pid=1, labels=("shop",), agents=("codex",), concurrency=1, job_id=None,
        version="1", started_at=now.second, seen_at=now.second, lease=new_lease(60, now),
    )  # fmt: skip
    registry.store.note_worker(entry)
    first, second = (registry.register(prompt="x", agent="codex", label="shop").job for _ in range(2))
    assert "which a worker on forge serves" in reason_of(reading, second)
    registry.pick("shop", owner="w")
    assert "the worker on forge is full, with 1 job at a time" in reason_of(reading, second)
    questions.ask(registry, first.job_id, Draft(kind="question", text="?"), attempt=1)
    assert "full" not in reason_of(reading, second), "a job that asks may occupy no place"
