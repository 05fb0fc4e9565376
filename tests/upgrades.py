"""What has to be true of a store of version 1 that was brought up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mam.jobs.record import parse_job
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.port import Query
from mam.testing.conformance.base import registered

if TYPE_CHECKING:
    from mam.stores.port import Store

STATUSES = {
    "running0": "running", "finished": "completed", "failed00": "error", "retry001": "error", "retry002": "pending",
    "waiting0": "waiting", "later000": "waiting", "called00": "cancelled", "key00000": "pending", "pending0": "pending",
}  # fmt: skip


def check_everything_is_there(store: Store) -> None:
    """Every job, event and line of the journal, and nothing of them is changed by having been brought up to date."""
    assert {job.job_id: job.status.value for job in store.select(Query())} == STATUSES
    assert [job.number for job in store.select(Query())] == list(range(len(STATUSES), 0, -1))
    assert store.get("finished").result == "42"
    assert store.get("running0").prompt == "do running0; it's 한 job"
    assert [event["event"] for event in store.events("running0")] == ["progress"]
    assert [event["event"] for event in store.events("finished")] == ["completed"]
    assert {entry.job_id for entry in store.entries(None)} == STATUSES.keys()
    check_replay(store)


def check_replay(store: Store) -> None:
    """The journal, replayed, is the registry; what version 1 did not know is as in a new record."""
    records: dict[str, dict[str, Any]] = {}
    for entry in store.entries(None):
        records.setdefault(entry.job_id, {}).update(entry.fields or {})
    replayed = {job_id: parse_job(fields, "journal") for job_id, fields in records.items()}
    assert replayed == {job.job_id: job for job in store.select(Query())}


def check_work_goes_on(store: Store) -> None:
    """As if the store had always been of this version: claims, retries, keys, those that come after others, pauses."""
    registry = Registry(store)
    assert registry.heartbeat("running0", attempt=1).lease is not None
    newest = store.newest("failed00")
    assert newest is not None
    assert newest.job_id == "retry002", "the chain of retries is known by its first job"
    assert not registry.register(prompt="again", agent="shell", key="nightly").created
    (after,) = registered(registry, label="v1", after=["failed00", "running0"])
    registry.complete("running0", attempt=1)
    registry.complete("retry002")
    assert store.get(after).status is Status.WAITING
    order = []
    while (job := registry.pick("v1", owner="worker")) is not None:
        order.append(job.job_id)
        registry.complete(job.job_id, attempt=job.attempt)
    assert order == ["key00000", "pending0", after]
    assert store.get(after).number == len(STATUSES) + 1
    check_replay(store)
