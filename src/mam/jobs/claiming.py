"""Which job a claim takes. `explain` asks the same questions, so the two cannot disagree."""

from __future__ import annotations

from mam.jobs.record import Job
from mam.jobs.status import PENDING


def is_claimable(job: Job, label: str) -> bool:
    """Whether a claim for this label may take this job now."""
    return job.status is PENDING and job.agent_session == label


def claim_order(job: Job) -> tuple[int, int]:
    """Highest priority first, then the oldest by the store's own count."""
    return (-job.priority, job.number)
