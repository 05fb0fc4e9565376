"""What a job left behind: the output of its agent, and its diff; from this host, otherwise from the store."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.record import Job
    from mam.registry import Registry


def log_of(registry: Registry, job: Job) -> Iterable[bytes]:
    from mam.work.output_source import output_of

    source = output_of(registry, job.job_id, job.attempt)
    return source.read() if job.attempt and source.exists() else ()


def diff_of(registry: Registry, job: Job) -> Iterable[bytes]:
    from mam.work.git.command import GitFailed
    from mam.work.git.diffs import DiffMissing, job_diff
    from mam.work.state_dirs import private_prefix, work_directory

    directory = work_directory(registry.store.address)
    private = f"{private_prefix(directory, job.job_id, job.attempt)}.diff-{os.getpid()}"
    try:
        return list(job_diff([job], directory, private).stream())
    except (DiffMissing, GitFailed):
        from mam.stores.outputs import DIFF

        stored = registry.store.outputs.get(job.job_id, job.attempt, DIFF)
        return () if stored is None else (stored,)
