"""What only few jobs have, and so stands in a table of its own (schema_0010.sql)."""

from __future__ import annotations

from mam.jobs.status import CANCELLED, ERROR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.jobs.record import Job

FAILED = frozenset({ERROR, CANCELLED})
_PROPERTIES = ("key", "retry_of", "root", "parent", "exclusive", "claimant_agent")


def is_rare(values: dict[str, Any]) -> bool:
    """Whether a new row has anything of it."""
    return values["status"] in FAILED or any(values[name] is not None for name in _PROPERTIES)


def is_watched(job: Job) -> bool:
    """Whether somebody looks for the status of this job there."""
    return job.exclusive is not None or job.claimant is not None or job.status in FAILED
