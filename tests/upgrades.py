"""What must hold for a store of mam 0.1.0 after its upgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mam.errors import GenerationLost
from mam.jobs.record import parse_job
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.port import Query
from mam.testing.conformance.base import register_jobs

if TYPE_CHECKING:
    from mam.stores.port import Store

STATUSES = {
    "running0": "running", "finished": "completed", "failed00": "error", "retry001": "error", "retry002": "pending",
    "waiting0": "waiting", "later000": "waiting", "called00": "cancelled", "key00000": "pending", "pending0": "pending",
    "holder00": "running", "behind00": "pending", "after000": "waiting", "session0": "running", "extra000": "pending",
    "newest00": "pending",
}  # fmt: skip
"""In the order of their numbers; `archived0` was number 15."""


def check_everything_is_there(store: Store) -> None:
    """Every job and event, the archive, pauses and generations."""
    assert {job.job_id: job.status.value for job in store.select(Query())} == STATUSES
    assert [job.number for job in store.select(Query())] == [17, 16, *range(14, 0, -1)]
    held = {job.job_id: job.claimant for job in store.select(Query()) if job.claimant is not None}
    assert held == {"session0": {"agent_id": "tpu", "generation_id": "second"}}
    assert store.get("finished").result == "42"
    assert store.get("running0").prompt == "do running0; it's 한 job"
    extra = store.get("extra000")
    assert (extra.permissions, extra.workspace, extra.priority, extra.timeout_sec) == ("full", "fresh", -3, 77)
    assert extra.expected_artifacts == ["out/a.txt"]
    assert [event["event"] for event in store.events("running0")] == ["progress"]
    assert [event["event"] for event in store.events("finished")] == ["completed"]
    kept = store.archived("archived0")
    assert kept is not None
    assert (kept.job.result, kept.job.key, [event["event"] for event in kept.events]) == (
        "old", "kept", ["progress", "completed"],
    )  # fmt: skip
    check_replay(store)


def check_replay(store: Store) -> None:
    """The journal, replayed, is the registry."""
    records: dict[str, dict[str, Any]] = {}
    for entry in store.entries(None):
        records.setdefault(entry.job_id, {}).update(entry.fields or {})
        if entry.fields is None:
            del records[entry.job_id]
    replayed = {job_id: parse_job(fields, "journal") for job_id, fields in records.items()}
    assert replayed == {job.job_id: job for job in store.select(Query())}


def check_work_goes_on(store: Store) -> None:
    """As if the store had always been of this version: claims, retries, keys, dependencies, pauses, sessions."""
    registry = Registry(store)
    assert registry.heartbeat("running0", attempt=1).lease is not None
    newest = store.newest("failed00")
    assert newest is not None
    assert newest.job_id == "retry002", "the chain of retries is known by its first job"
    assert not registry.register(prompt="again", agent="shell", key="nightly").created
    assert registry.register(prompt="again", agent="shell", key="kept").job.job_id == "archived0"
    (after,) = register_jobs(registry, label="v1", after=["failed00", "running0"])
    registry.complete("running0", attempt=1)
    registry.complete("retry002")
    assert store.get(after).status is Status.WAITING
    order = []
    while (job := registry.pick("v1", owner="worker")) is not None:
        order.append(job.job_id)
        registry.complete(job.job_id, attempt=job.attempt)
    assert order == ["key00000", "pending0", after]
    assert store.get(after).number == 18
    _check_pauses_and_keys(registry)
    _check_sessions(registry)
    check_replay(store)


def _check_pauses_and_keys(registry: Registry) -> None:
    store = registry.store
    assert [(pause.agent, pause.reason) for pause in store.pauses()] == [("opencode", "limit")]
    assert store.holder("repo") == "holder00"
    freed = registry.pick("keyed", owner="worker")
    assert freed is not None
    assert freed.job_id == "after000", "running0 has ended; the key is still in use"
    registry.complete("holder00", attempt=1)
    assert registry.pick("keyed", owner="worker") == store.get("behind00")


def _check_sessions(registry: Registry) -> None:
    with pytest.raises(GenerationLost):
        registry.announce("tpu", "first")
    assert [job.job_id for job in registry.announce("tpu", "third")] == ["session0"]
    (job_id,) = register_jobs(registry, label="v3")
    assert registry.pick("v3", owner="worker", session=("gpu", "first")) == registry.get(job_id)
    assert registry.announce("gpu", "second") == [registry.get(job_id)]
    assert registry.get(job_id).status is Status.PENDING
