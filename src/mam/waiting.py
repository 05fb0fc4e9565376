"""Waiting for the end of jobs, for `mam wait`, `mam run` and the worker of a parent."""

from __future__ import annotations

import time

from mam.errors import BadRecord, TimedOut, UnknownJob
from mam.registry import LONGEST_SLEEP_SECONDS
from mam.stores.interest import Interest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mam.errors import MamError
    from mam.jobs.record import Job
    from mam.registry import Registry


def follow(registry: Registry, job_ids: Sequence[str], timeout: float | None) -> Iterator[Job]:
    """As `Registry.follow`. It also sweeps, so that an expired lease is noticed even if no worker claims."""
    ends = None if timeout is None else time.monotonic() + timeout
    offset = registry.store.end_offset()
    lost: list[MamError] = []
    open_ids = set(job_ids)
    interest = Interest(labels=(), holds=open_ids.__contains__)
    yield from _read_jobs(registry, list(job_ids), open_ids, lost)
    while open_ids:
        registry.sweep_if_due()
        changed: dict[str, None] = {}
        for entry in registry.store.entries(offset):
            offset = entry.offset
            if entry.job_id in open_ids:
                changed[entry.job_id] = None
        yield from _read_jobs(registry, list(changed), open_ids, lost)
        if open_ids and not changed:
            left = LONGEST_SLEEP_SECONDS if ends is None else ends - time.monotonic()
            if left <= 0:
                who = "1 job has" if len(open_ids) == 1 else f"{len(open_ids)} jobs have"
                raise TimedOut(what=f"{who} not ended", seconds=f"{timeout:g}")
            registry.wait_for_change(offset, left, interest)
    if lost:
        raise lost[0]


def _read_jobs(registry: Registry, job_ids: list[str], open_ids: set[str], lost: list[MamError]) -> Iterator[Job]:
    """The current state of each job. A job that is gone or unreadable is no longer waited for; its error is kept."""
    for job_id in job_ids:
        try:
            job = registry.get_exact(job_id)
        except (UnknownJob, BadRecord) as error:
            lost.append(error)
            open_ids.discard(job_id)
            continue
        if job.status.ended:
            open_ids.discard(job_id)
        yield job
