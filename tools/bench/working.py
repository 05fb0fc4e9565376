"""What is measured on every database: a job is claimed and completed, each durable before the next begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam.registry import Registry
from tools.bench.common import LABEL, OWNER, PROMPT

if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.stores.port import Store


def claim_and_complete(registry: Registry, result: str | None = None) -> str:
    """As `mam pick` and `mam complete` do it, without the audit log."""
    job = registry.pick(LABEL, owner=OWNER)
    assert job is not None, "the bench has run out of jobs"
    registry.complete(job.job_id, attempt=job.attempt, result=result)
    return job.job_id


def two_templates(store: Store) -> tuple[Job, Job]:
    """A job that is pending and one that has ended, registered and worked on as any other: all others are copies."""
    registry = Registry(store)
    registry.register(prompt=PROMPT, agent="bench", label=LABEL)
    ended = claim_and_complete(registry)
    pending = registry.register(prompt=PROMPT, agent="bench", label=LABEL).job
    return pending, store.get(ended)


def numbered(text: str, number: int) -> str:
    """SQL: the same text of a record with the number of a fresh copy, which may be the last thing in it."""
    for behind in (",", "}"):
        text = f"replace({text}, '\"number\":{number}{behind}', '\"number\":' || fresh.number || '{behind}')"
    return text
