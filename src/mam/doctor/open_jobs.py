"""The open jobs, read once, and how many there are of each status."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from mam.jobs.status import ENDED, RUNNING, Status
from mam.jobs.sweep import next_deadline
from mam.stores.port import Query
from mam.util.clock import parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.stores.port import Problem, Store

LATE_MS = 60_000
NEWEST = 50


class Survey(Frozen):
    statuses: Counter[str]
    open_agents: Counter[str]
    """Of jobs that have not ended."""
    latest_ms: int | None
    """When the latest of the open and of the newest jobs was written, by its record."""
    expired: list[str]
    """Running jobs whose lease ran out a while ago."""
    problems: list[Problem]


def survey(store: Store, saw: Callable[[str], None]) -> Survey:
    open_agents: Counter[str] = Counter()
    latest: int | None = None
    expired: list[str] = []
    late = store.clock.now().wall_ms - LATE_MS
    for job in store.select(Query(statuses=frozenset(Status) - ENDED)):
        saw("open jobs")
        latest = max(latest or 0, parse_time(job.updated_at))
        open_agents[job.agent] += 1
        end = next_deadline(job) if job.status is RUNNING else None
        if end is not None and end.wall_ms < late:
            expired.append(job.job_id)
    for job in islice(store.select(Query()), NEWEST):
        latest = max(latest or 0, parse_time(job.updated_at))
    return Survey(
        statuses=Counter(store.counts()), open_agents=open_agents, latest_ms=latest, expired=expired,
        problems=store.problems(),
    )  # fmt: skip
