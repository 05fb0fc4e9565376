"""What became of the notifications of the latest jobs, for the page and `mam push`."""

from __future__ import annotations

from itertools import islice

from mam.jobs.notices import LINE
from mam.jobs.status import ERROR
from mam.stores.port import Query
from mam.util.frozen import Frozen
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.jobs.record import Job, Json
    from mam.registry import Registry

JOBS_LOOKED_AT, SHOWN = 200, 50


class Outcome(Frozen):
    """One attempt to send one message."""

    at: str
    job_id: str
    notice: str
    to: str
    """The name of the browser."""
    outcome: str
    why: str

    def to_json(self) -> Json:
        return self.as_dict()


def outcomes(registry: Registry, may_see: Callable[[Job], bool]) -> list[Outcome]:
    """Newest first. The history of a job has those of older jobs."""
    found = [one for job in _told(registry) if may_see(job) for one in _of(registry, job)]
    return sorted(found, key=lambda one: one.at, reverse=True)[:SHOWN]


def _told(registry: Registry) -> Iterator[Job]:
    latest = list(islice(registry.select(Query()), JOBS_LOOKED_AT))
    asking = list(islice(registry.select(Query(asking=True)), JOBS_LOOKED_AT))
    jobs = {job.job_id: job for job in (*latest, *asking)}
    return (job for job in jobs.values() if job.questions or job.status is ERROR)


def _of(registry: Registry, job: Job) -> Iterator[Outcome]:
    for line in registry.history(job.job_id):
        if line.get("event") == LINE:
            texts = {name: one_line(str(line.get(name) or "")) for name in ("notice", "to", "outcome", "why")}
            yield Outcome(at=str(line.get("timestamp")), job_id=job.job_id, **texts)
