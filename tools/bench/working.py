"""What is measured on every database: a job is claimed and completed, each durable before the next begins."""

from __future__ import annotations

from mam.registry import Registry
from tools.bench.common import LABEL, OWNER


def claim_and_complete(registry: Registry, result: str | None = None) -> str:
    """As `mam pick` and `mam complete` do it, without the audit log."""
    job = registry.pick(LABEL, owner=OWNER)
    assert job is not None, "the bench has run out of jobs"
    registry.complete(job.job_id, attempt=job.attempt, result=result)
    return job.job_id
