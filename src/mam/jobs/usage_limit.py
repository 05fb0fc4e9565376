"""A usage limit pauses an agent until the limit resets; then one job is tried, then the rest.

The job that met the limit waits for the reset and becomes the probe: the pause lets only this job through until the
model has answered it. If the probe never runs, because it was cancelled or no worker claims it, the pause ends some
time after the reset.
"""

from __future__ import annotations

from mam.jobs.change import Change, moved, unchanged
from mam.jobs.pause import Pause
from mam.jobs.status import PENDING, WAITING
from mam.util.clock import Moment, iso_milli, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.record import Job, Json

RESET = "reset"
"""The value of `waiting_for`."""
UNKNOWN_SECONDS, MAX_UNKNOWN_SECONDS = 300.0, 4 * 3600.0
"""The back-off when the reset time is unknown: it doubles with each limit."""
PROBE_SECONDS = 600.0
"""How long after the reset the other jobs wait for the probe."""
_MARGIN_MS = 1000
"""The vendor's clock and the local one may differ."""


def end_of_limit(resets_at_ms: int | None, hits: int, moment: Moment) -> int:
    """When to try again, after `hits` limits in a row without an answer between them."""
    if resets_at_ms is not None:
        return max(resets_at_ms, moment.wall_ms) + _MARGIN_MS
    return moment.wall_ms + round(min(MAX_UNKNOWN_SECONDS, UNKNOWN_SECONDS * 2.0 ** min(hits, 20)) * 1000)


def limit_pause(pauses: Iterable[Pause], job: Job, resets_at_ms: int, reason: str, moment: Moment) -> Pause | None:
    """The pause for a usage limit; None when the agent already has a longer pause or one of another kind."""
    until = resets_at_ms + round(PROBE_SECONDS * 1000)
    for one in pauses:
        if (one.agent, one.label) != (job.agent, None) or not one.is_active(moment):
            continue
        if one.until is None or one.probe is None or parse_time(one.until) > until:
            return None
    return Pause(
        agent=job.agent, until=iso_milli(until), reason=reason, made_at=moment.second, probe=job.job_id
    )  # fmt: skip


def end_wait(job: Job, moment: Moment) -> Change:
    """Frees a job that waits for the reset. For any other job, nothing changes."""
    if job.status is not WAITING or job.waiting_for != RESET:
        return unchanged(job)
    return moved(job, PENDING, moment, "resume", {"waiting_for": None, "due_at": None})


def is_probe(pauses: Iterable[Pause], job: Job) -> bool:
    """Whether this job is the probe that the other jobs of its agent wait for."""
    return any(one.probe == job.job_id and (one.agent, one.label) == (job.agent, None) for one in pauses)


def wait_for_reset(
    job: Job, moment: Moment, *,
    attempt: int, until_ms: int, reason: str, run: Json, claim_id: str | None = None,
) -> Change:  # fmt: skip
    """The attempt met a usage limit; the job waits for the reset, without a retry or a loss."""
    from mam.jobs.acts import check_fence

    check_fence(job, attempt, claim_id)
    wait = {"run": run, "owner": None, "reason": reason, "waiting_for": RESET, "due_at": iso_milli(until_ms)}
    return moved(job, WAITING, moment, "worker", wait)
