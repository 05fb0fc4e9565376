"""All jobs, read once, for every check that wants to know something about all of them."""

from __future__ import annotations

from collections import Counter

from mam.clock import parse_time
from mam.frozen import Frozen
from mam.jobs.status import RUNNING
from mam.jobs.sweep import end_of_wait
from mam.stores.port import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.stores.port import Problem, Store

LATE_MS = 60_000


class Survey(Frozen):
    statuses: Counter[str]
    open_agents: Counter[str]
    """Of jobs that have not ended."""
    latest_ms: int | None
    """When the latest record says that it was written."""
    expired: list[str]
    """Running jobs whose lease ran out a while ago."""
    problems: list[Problem]


def survey(store: Store, saw: Callable[[str], None]) -> Survey:
    statuses: Counter[str] = Counter()
    open_agents: Counter[str] = Counter()
    latest: int | None = None
    expired: list[str] = []
    late = store.clock.now().wall_ms - LATE_MS
    for job in store.select(Query()):
        saw("records")
        statuses[job.status] += 1
        latest = max(latest or 0, parse_time(job.updated_at))
        if not job.status.ended:
            open_agents[job.agent] += 1
        end = end_of_wait(job) if job.status is RUNNING else None
        if end is not None and end.wall_ms < late:
            expired.append(job.job_id)
    return Survey(
        statuses=statuses, open_agents=open_agents, latest_ms=latest, expired=expired, problems=store.problems()
    )
