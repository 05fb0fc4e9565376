"""A job as a row: what the database must see of it to choose and to order, and the record as text."""

from __future__ import annotations

import json

from mam.clock import parse_time
from mam.jobs.record import parse_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.jobs.record import Job, Json

as_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def job_values(job: Job, fields: Json) -> dict[str, Any]:
    """The columns of a row, by name."""
    lease = job.lease
    boot = lease is not None and lease.boot_id != ""
    return {
        "job_id": job.job_id,
        "number": job.number,
        "status": job.status.value,
        "label": job.agent_session,
        "priority": job.priority,
        "created_at": job.created_at,
        "key": job.key,
        "retry_of": job.retry_of,
        "due_ms": lease.wall_ms if lease else parse_time(job.due_at) if job.due_at else None,
        "boot_id": lease.boot_id if lease and boot else None,
        "boot_ms": lease.boot_ms if lease and boot else None,
        "record": as_text({name: value for name, value in fields.items() if name != "prompt"}),
    }


def job_of(record: str, prompt: str, store: str) -> Job:
    return parse_job({**json.loads(record), "prompt": prompt}, store)
