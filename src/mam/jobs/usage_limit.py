"""A usage limit: nobody claims for that agent until it is over, then one job is tried, then the rest.

The job that met the limit waits for the reset and is the one that is tried: the pause lets it through and holds the
others back until the model has answered it. If nobody tries it, because it was called off or its worker is gone, the
pause ends by itself a while after the reset.
"""

from __future__ import annotations

from mam.jobs.change import Change, moved
from mam.jobs.pause import Pause
from mam.jobs.status import WAITING
from mam.util.clock import Moment, iso_milli, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.record import Job, Json

UNKNOWN_SECONDS, MAX_UNKNOWN_SECONDS = 300.0, 4 * 3600.0
"""When nobody said when a limit ends: first that long, then twice as long, and so on."""
PROBE_SECONDS = 600.0
"""How long after the reset the others wait for the one that is tried."""
_MARGIN_MS = 1000
"""A vendor's clock and ours differ."""


def end_of_limit(resets_at_ms: int | None, hits: int, moment: Moment) -> int:
    """When to try again, after so many limits in a row without an answer in between."""
    if resets_at_ms is not None:
        return max(resets_at_ms, moment.wall_ms) + _MARGIN_MS
    return moment.wall_ms + round(min(MAX_UNKNOWN_SECONDS, UNKNOWN_SECONDS * 2.0 ** min(hits, 20)) * 1000)


def limit_pause(pauses: Iterable[Pause], job: Job, resets_at_ms: int, reason: str, moment: Moment) -> Pause | None:
    """The pause that a limit makes; None when the agent's pause of another kind, or a longer one, is there already."""
    until = resets_at_ms + round(PROBE_SECONDS * 1000)
    for one in pauses:
        if (one.agent, one.label) != (job.agent, None) or not one.is_active(moment):
            continue
        if one.until is None or one.probe is None or parse_time(one.until) > until:
            return None
    return Pause(
        agent=job.agent, until=iso_milli(until), reason=reason, made_at=moment.second, probe=job.job_id
    )  # fmt: skip


def is_probe(pauses: Iterable[Pause], job: Job) -> bool:
    """Whether the others wait for what becomes of this one."""
    return any(one.probe == job.job_id and (one.agent, one.label) == (job.agent, None) for one in pauses)


def wait_for_reset(
    job: Job, moment: Moment, *,
    attempt: int, until_ms: int, reason: str, run: Json, claim_id: str | None = None,
) -> Change:  # fmt: skip
    """The attempt met a usage limit: that costs the job neither a retry nor a loss."""
    from mam.jobs.acts import check_fence

    check_fence(job, attempt, claim_id)
    wait = {"run": run, "owner": None, "reason": reason, "waiting_for": "reset", "due_at": iso_milli(until_ms)}
    return moved(job, WAITING, moment, "worker", wait)
