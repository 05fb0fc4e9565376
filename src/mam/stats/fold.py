"""What one entry of the journal says about how the work goes."""

from __future__ import annotations

from mam.clock import parse_time
from mam.errors import MamError
from mam.frozen import Frozen
from mam.jobs.status import ENDED, RUNNING, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.jobs.change import Line
    from mam.stores.port import Entry, Store

UNKNOWN = "?"


class Told(Frozen):
    """One move of one job, or what an attempt cost."""

    job_id: str
    at: int = 0
    """Seconds since 1970."""
    begins: bool = False
    ends: bool = False
    status: str | None = None
    """The one it has now; None when it has not changed."""
    label: str = UNKNOWN
    agent: str = UNKNOWN
    attempts: int = 0
    losses: int = 0
    retries: int = 0
    tokens: int = 0
    cost: float = 0.0


def told_by(entry: Entry, store: Store) -> Iterator[Told]:
    for line in entry.lines:
        if line["event"] == "registered":
            label, agent = _who(entry, store)
            status = str(line.get("status", "pending"))
            yield Told(
                job_id=entry.job_id, at=_second(line), begins=True, ends=status in ENDED, status=status, label=label,
                agent=agent,
            )  # fmt: skip
        elif line["event"] == "status_changed":
            to = str(line["to"])
            yield Told(
                job_id=entry.job_id,
                at=_second(line),
                status=to,
                ends=to in ENDED,
                attempts=int(to == RUNNING),
                losses=int(bool(line.get("losses"))),
                retries=int(to == WAITING and line.get("from") == RUNNING and line.get("by") == "fail"),
            )
    spent = _spent(entry.fields or {})
    if spent is not None:
        yield Told(job_id=entry.job_id, tokens=spent[0], cost=spent[1])


def _second(line: Line) -> int:
    return parse_time(str(line["timestamp"])) // 1000


def _who(entry: Entry, store: Store) -> tuple[str, str]:
    """A record that came as a file has only its number in the journal; the rest is asked of the store."""
    fields = entry.fields or {}
    if "agent_session" in fields and "agent" in fields:
        return str(fields["agent_session"]), str(fields["agent"])
    try:
        job = store.get(entry.job_id)
    except MamError:
        return UNKNOWN, UNKNOWN
    return job.agent_session, job.agent


def _spent(fields: dict[str, Any]) -> tuple[int, float] | None:
    """What the attempt whose run was just written down took of the agent's account."""
    run = fields.get("run")
    usage = run.get("usage") if isinstance(run, dict) else None
    if not isinstance(usage, dict):
        return None
    tokens = sum(value for name, value in usage.items() if name.endswith("tokens") and isinstance(value, int))
    cost = usage.get("cost_usd")
    return tokens, float(cost) if isinstance(cost, (int, float)) else 0.0
