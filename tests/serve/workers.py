"""A live worker, as its entry in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam.jobs.lease import new_lease
from mam.jobs.workers import WorkerEntry

if TYPE_CHECKING:
    from mam.registry import Registry


def live_worker(registry: Registry, name: str) -> WorkerEntry:
    now = registry.store.clock.now()
    entry = WorkerEntry(
        name=name,
        owner=name,
        host="box",
        pid=1,
        version="0",
        labels=("codex",),
        agents=("codex",),
        concurrency=1,
        job_id=None,
        started_at=now.second,
        seen_at=now.second,
        lease=new_lease(60, now),
    )
    registry.store.note_worker(entry)
    return entry
