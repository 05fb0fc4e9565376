"""A job as a row: what the database must see of it to choose and to order, and the record as text."""

from __future__ import annotations

import json

from mam.jobs.record import parse_job
from mam.jobs.sweep import end_of_wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.jobs.record import Job, Json

as_text = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def job_values(job: Job, fields: Json) -> dict[str, Any]:
    """The columns of a row, by name."""
    end = end_of_wait(job)
    by_boot = end is not None and end.boot_id != ""
    return {
        "job_id": job.job_id,
        "number": job.number,
        "status": job.status.value,
        "label": job.agent_session,
        "priority": job.priority,
        "created_at": job.created_at,
        "key": job.key,
        "retry_of": job.retry_of,
        "due_ms": end.wall_ms if end else None,
        "boot_id": end.boot_id if end and by_boot else None,
        "boot_ms": end.boot_ms if end and by_boot else None,
        "record": as_text({name: value for name, value in fields.items() if name != "prompt"}),
    }


def job_of(record: str, prompt: str, store: str) -> Job:
    return parse_job({**json.loads(record), "prompt": prompt}, store)
