"""Which life of a session counts in a store. Pure: a store says what it knows, and is told what to know instead.

A session claims as `agent_id` and `generation_id`. The first word of a generation replaces the one before it, for good:
its running jobs return to pending, and it can claim no more. What it still writes under its old claims is refused by
their attempts, as every late write is.
"""

from __future__ import annotations

from mam.errors import GenerationLost
from mam.jobs.change import Change, moved, unchanged
from mam.jobs.record import Job
from mam.jobs.status import PENDING, RUNNING
from mam.util.clock import Moment
from mam.util.frozen import Frozen

MAX_SUPERSEDED = 10_000
"""How many replaced generations of one session are remembered; more lives than any of them has."""


class Generations(Frozen):
    """What a store knows of one session."""

    current: str
    superseded: tuple[str, ...] = ()


def supersede(known: Generations | None, agent_id: str, generation_id: str) -> Generations:
    """What is to be known after this generation has spoken; the very same when it is the one that counts already."""
    if known is None:
        return Generations(current=generation_id)
    if known.current == generation_id:
        return known
    if generation_id in known.superseded:
        raise GenerationLost(agent=agent_id, owner=known.current, generation=generation_id)
    return Generations(current=generation_id, superseded=(*known.superseded, known.current)[-MAX_SUPERSEDED:])


def release_displaced(job: Job, agent_id: str, generation_id: str, moment: Moment) -> Change:
    """A job that an older generation of the session holds may be claimed again. That is not its fault: no loss, no
    retry. Any other job stays as it is."""
    holder = job.claimant
    if job.status is not RUNNING or holder is None or holder["agent_id"] != agent_id:
        return unchanged(job)
    if holder["generation_id"] == generation_id:
        return unchanged(job)
    return moved(job, PENDING, moment, "generation", {"owner": None})
