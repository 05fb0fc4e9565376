"""Extracts the transitions of jobs and their costs from journal entries."""

from __future__ import annotations

from mam.jobs.status import ENDED, RUNNING, WAITING
from mam.jobs.summary import spent
from mam.util.clock import parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.jobs.change import AuditRecord
    from mam.stores.port import Entry

UNKNOWN = "?"


class JobTransition(Frozen):
    """One transition of one job, or the cost of an attempt."""

    job_id: str
    at: int = 0
    """Seconds since 1970."""
    begins: bool = False
    ends: bool = False
    status: str | None = None
    """The new status; None when it has not changed."""
    label: str = UNKNOWN
    agent: str = UNKNOWN
    registered: int | None = None
    ended: int | None = None
    pending: int = 0
    running: int = 0
    attempts: int = 0
    losses: int = 0
    retries: int = 0
    tokens: int = 0
    cost: float = 0.0


def transitions_in(entry: Entry) -> Iterator[JobTransition]:
    for line in entry.lines:
        if line["event"] in ("registered", "migrated"):
            yield _arrived(entry, line)
        elif line["event"] == "status_changed":
            to = str(line["to"])
            yield JobTransition(
                job_id=entry.job_id,
                at=_second(line),
                status=to,
                ends=to in ENDED,
                attempts=int(to == RUNNING),
                losses=int(bool(line.get("losses"))),
                retries=int(to == WAITING and line.get("from") == RUNNING and line.get("by") == "fail"),
            )
    cost = spent(entry.fields, entry.lines)
    if cost is not None:
        yield JobTransition(job_id=entry.job_id, tokens=cost[0], cost=cost[1])


def _arrived(entry: Entry, line: AuditRecord) -> JobTransition:
    """A new job, or an imported or adopted one, whose record has the times of its last claim and its end."""
    fields = entry.fields or {}
    status = str(line.get("status", "pending"))
    arrived = JobTransition(
        job_id=entry.job_id, at=_second(line), begins=True, status=status,
        label=str(fields.get("agent_session", UNKNOWN)), agent=str(fields.get("agent", UNKNOWN)),
        attempts=int(fields.get("attempt") or 0), losses=int(fields.get("losses") or 0),
        retries=int(fields.get("retries") or 0),
    )  # fmt: skip
    registered, claimed = _at(fields, "created_at", arrived.at), _at(fields, "claimed_at", None)
    ended = _at(fields, "ended_at", arrived.at) if status in ENDED else None
    return arrived.replace(
        registered=registered,
        ended=ended,
        pending=0 if claimed is None or registered is None else max(0, claimed - registered),
        running=0 if claimed is None or ended is None else max(0, ended - claimed),
        at=claimed if status == RUNNING and claimed is not None else registered,
    )


def _at(fields: dict[str, Any], name: str, otherwise: int | None) -> int | None:
    text = fields.get(name)
    return otherwise if text is None else parse_time(str(text)) // 1000


def _second(line: AuditRecord) -> int:
    return parse_time(str(line["timestamp"])) // 1000
