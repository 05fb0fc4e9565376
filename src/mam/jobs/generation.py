"""Which generation of a session is current in a store. Pure.

A session claims as `agent_id` and `generation_id`. The first announcement of a generation replaces the previous one for
good: the running jobs of the old one return to pending, and it can claim no more. Its late writes are refused by their
attempts, as every late write is.
"""

from __future__ import annotations

from mam.errors import GenerationLost
from mam.jobs.change import Change, moved, unchanged
from mam.jobs.record import Job
from mam.jobs.status import PENDING, RUNNING
from mam.util.clock import Moment
from mam.util.frozen import Frozen

MAX_SUPERSEDED = 10_000
"""How many replaced generations of one session a store remembers."""


class Generations(Frozen):
    """What a store knows about one session."""

    current: str
    superseded: tuple[str, ...] = ()


def supersede(known: Generations | None, agent_id: str, generation_id: str) -> Generations:
    """The generations after this one is announced; the same object when it is already the current one."""
    if known is None:
        return Generations(current=generation_id)
    if known.current == generation_id:
        return known
    if generation_id in known.superseded:
        raise GenerationLost(agent=agent_id, owner=known.current, generation=generation_id)
    return Generations(current=generation_id, superseded=(*known.superseded, known.current)[-MAX_SUPERSEDED:])


def release_displaced(job: Job, agent_id: str, generation_id: str, moment: Moment) -> Change:
    """Returns a job that an older generation of the session holds to pending, without a loss or a retry. Any other job
    stays unchanged."""
    holder = job.claimant
    if job.status is not RUNNING or holder is None or holder["agent_id"] != agent_id:
        return unchanged(job)
    if holder["generation_id"] == generation_id:
        return unchanged(job)
    return moved(job, PENDING, moment, "generation", {"owner": None})
