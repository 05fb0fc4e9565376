"""What a job left behind: the output of its agent, and its diff; from this host, otherwise from the store."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mam.jobs.record import Job
    from mam.registry import Registry

DIFF_LIMIT = 4 << 20
"""Bytes of a diff that are read: more than a resource shows."""


def log_of(registry: Registry, job: Job) -> Iterable[bytes]:
    from mam.work.output_source import output_of

    source = output_of(registry, job.job_id, job.attempt)
    return source.read() if job.attempt and source.exists() else ()


def diff_of(registry: Registry, job: Job) -> Iterable[bytes]:
    from mam.work.git.command import GitFailed
    from mam.work.git.diffs import DiffMissing, job_diff
    from mam.work.state_dirs import private_prefix, work_directory

    directory = work_directory(registry.store.address)
    private = f"{private_prefix(directory, job.job_id, job.attempt)}.diff-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        return _begin(job_diff([job], directory, private).stream())
    except (DiffMissing, GitFailed):
        from mam.stores.outputs import DIFF

        stored = registry.store.outputs.get(job.job_id, job.attempt, DIFF)
        return () if stored is None else (stored,)


def _begin(parts: Iterator[bytes]) -> list[bytes]:
    held, size = list[bytes](), 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size > DIFF_LIMIT:
            break
    return held
