"""Eight processes on one store, until nothing is left: every job is claimed and finished exactly once.

`MAM_MANY=2000` makes it two thousand jobs for each process. The same on a server is in tests/postgres.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.port import Query
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.races import RacePool

if TYPE_CHECKING:
    from mam.stores.port import Store

PROCESSES = 8
EACH = int(os.environ.get("MAM_MANY", "50"))

MAKERS: dict[str, Callable[[str], bool]] = {"files": create_files_store, "sqlite": create_sqlite_store}
OPENERS: dict[str, Callable[[str], Store]] = {"files": FilesStore, "sqlite": SqliteStore}


def take_all(store: Store, report: Callable[[object], None]) -> list[str]:
    """Claims and completes until there is nothing left."""
    registry = Registry(store)
    taken = []
    while (job := registry.pick("many", owner=f"process {os.getpid()}")) is not None:
        registry.complete(job.job_id, attempt=job.attempt)
        taken.append(job.job_id)
        report(job.job_id)
    return taken


def register_some(store: Store, report: Callable[[object], None]) -> list[str]:
    registry = Registry(store)
    ids = []
    for number in range(EACH):
        ids.append(registry.register(prompt=f"job {number}", agent="many").job.job_id)
        report(ids[-1])
    return ids


def check_exactly_once(open_store: Callable[[], Store]) -> list[int]:
    """Register from all processes, then claim and complete from all; returns the numbers the jobs got."""
    with RacePool(open_store, processes=True) as pool:
        registered = [job_id for ids in pool.race([register_some] * PROCESSES) for job_id in ids]
        claimed = Counter(job_id for ids in pool.race([take_all] * PROCESSES) for job_id in ids)
    assert len(set(registered)) == PROCESSES * EACH
    assert claimed == Counter(registered)
    store = open_store()
    jobs = list(store.select(Query()))
    store.close()
    assert {job.status for job in jobs} == {Status.COMPLETED}
    assert {job.attempt for job in jobs} == {1}
    assert {job.job_id for job in jobs} == set(registered)
    return sorted(job.number for job in jobs)


@pytest.mark.parametrize("kind", OPENERS)
def test_eight_processes_claim_every_job_exactly_once(tmp_path: Path, kind: str) -> None:
    address = str(tmp_path / "jobs")
    MAKERS[kind](address)
    assert check_exactly_once(partial(OPENERS[kind], address)) == list(range(1, PROCESSES * EACH + 1))
