"""What has to be true of a store of an older version that was brought up to date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mam.errors import GenerationLost
from mam.jobs.record import parse_job
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.port import Query
from mam.testing.conformance.base import registered

if TYPE_CHECKING:
    from pathlib import Path

    from mam.stores.port import Store

STATUSES = {
    "running0": "running", "finished": "completed", "failed00": "error", "retry001": "error", "retry002": "pending",
    "waiting0": "waiting", "later000": "waiting", "called00": "cancelled", "key00000": "pending", "pending0": "pending",
}  # fmt: skip
"""In the data of every version."""
SINCE_2 = {"holder00": "running", "behind00": "pending", "after000": "waiting"}
"""What only version 2 could write: a key in use, one that waits for it, one that waits for `running0`."""


SINCE_3 = {"session0": "running"}
"""What only version 3 could write: a job that the second generation of `tpu` holds."""


def data_of(version: int, folder: Path) -> tuple[int, Path]:
    """What an older version wrote: of this one or, where it was only passed through, of the last before it."""
    written = max(known for known in range(1, version + 1) if (folder / f"version_{known}.sql").exists())
    return written, folder / f"version_{written}.sql"


def jobs_of(version: int) -> dict[str, str]:
    return {**STATUSES, **(SINCE_2 if version >= 2 else {}), **(SINCE_3 if version >= 3 else {})}


def check_everything_is_there(store: Store, version: int) -> None:
    """Every job, event and line of the journal, and nothing of them is changed by having been brought up to date."""
    jobs = jobs_of(version)
    assert {job.job_id: job.status.value for job in store.select(Query())} == jobs
    assert [job.number for job in store.select(Query())] == list(range(len(jobs), 0, -1))
    held = {job.job_id: job.claimant for job in store.select(Query()) if job.claimant is not None}
    assert held == ({"session0": {"agent_id": "tpu", "generation_id": "second"}} if version >= 3 else {})
    assert store.get("finished").result == "42"
    assert store.get("running0").prompt == "do running0; it's 한 job"
    assert [event["event"] for event in store.events("running0")] == ["progress"]
    assert [event["event"] for event in store.events("finished")] == ["completed"]
    assert {entry.job_id for entry in store.entries(None)} == jobs.keys()
    check_replay(store)


def check_replay(store: Store) -> None:
    """The journal, replayed, is the registry; what version 1 did not know is as in a new record."""
    records: dict[str, dict[str, Any]] = {}
    for entry in store.entries(None):
        records.setdefault(entry.job_id, {}).update(entry.fields or {})
    replayed = {job_id: parse_job(fields, "journal") for job_id, fields in records.items()}
    assert replayed == {job.job_id: job for job in store.select(Query())}


def check_work_goes_on(store: Store, version: int) -> None:
    """As if the store had always been of this version: claims, retries, keys, those that come after others, pauses,
    sessions."""
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
    assert store.get(after).number == len(jobs_of(version)) + 1
    if version >= 2:
        _check_what_version_2_knew(registry)
    _check_sessions(registry)
    if version >= 3:
        _check_what_version_3_knew(registry)
    check_replay(store)


def _check_what_version_2_knew(registry: Registry) -> None:
    store = registry.store
    assert [(pause.agent, pause.reason) for pause in store.pauses()] == [("opencode", "limit")]
    assert store.holder("repo") == "holder00"
    freed = registry.pick("keyed", owner="worker")
    assert freed is not None
    assert freed.job_id == "after000", "the end of running0 was told; the key is still in use"
    registry.complete("holder00", attempt=1)
    assert registry.pick("keyed", owner="worker") == store.get("behind00")


def _check_what_version_3_knew(registry: Registry) -> None:
    with pytest.raises(GenerationLost):
        registry.announce("tpu", "first")
    assert [job.job_id for job in registry.announce("tpu", "third")] == ["session0"]


def _check_sessions(registry: Registry) -> None:
    (job_id,) = registered(registry, label="v3")
    assert registry.pick("v3", owner="worker", session=("gpu", "first")) == registry.get(job_id)
    assert registry.announce("gpu", "second") == [registry.get(job_id)]
    assert registry.get(job_id).status is Status.PENDING
