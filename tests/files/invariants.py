"""What must hold for a registry after any fault."""

from __future__ import annotations

import json
from typing import Any

from mam.registry import Registry
from mam.stores.port import Query
from tests.files.conftest import StoreDir


def check(store_dir: StoreDir, registry: Registry) -> None:
    """Whole records, complete numbers, and a journal that gives the same jobs."""
    registry.sweep()  # any act finishes the files of a killed one
    jobs = {job.job_id: job for job in registry.select(Query())}
    assert registry.store.problems() == []
    for job_id, fields in replay(registry).items():
        job = jobs.pop(job_id)
        assert job.to_json() == fields
        shown = store_dir.fields(job_id)
        assert shown.pop("registry").keys() == {"epoch", "version", "digest"}
        assert shown == fields
        assert sequence(registry, job_id) == list(range(1, job.last_seq + 1))
        assert logged(store_dir, job_id) == registry.store.events(job_id)
        endings = [event for event in registry.store.events(job_id) if event.get("event") in ("completed", "error")]
        assert len(endings) == (1 if job.status.ended else 0)
    assert jobs == {}


def logged(store_dir: StoreDir, job_id: str) -> list[dict[str, Any]]:
    """What the event log of a job holds."""
    log = store_dir.path / f"{job_id}.events.log"
    return [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []


def replay(registry: Registry) -> dict[str, dict[str, Any]]:
    """The records as the journal alone gives them."""
    told: dict[str, dict[str, Any]] = {}
    for entry in registry.store.entries(None):
        if entry.fields is None:
            told.pop(entry.job_id, None)
        else:
            told.setdefault(entry.job_id, {}).update(entry.fields)
    return told


def sequence(registry: Registry, job_id: str) -> list[int]:
    numbers: list[int] = []
    for event in registry.store.events(job_id):
        numbers.extend(range(event["seq"], int(event["upto"] if "upto" in event else event["seq"]) + 1))
    return numbers
