"""How many things need a person: the number in the title of every page."""

from __future__ import annotations

from itertools import islice

from mam.errors import NotAllowed
from mam.jobs.draft import HUMAN
from mam.jobs.status import ERROR, OPEN
from mam.registry.listing import JobFilter
from mam.stores.port import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.access.reading import AuthorizedReading
    from mam.jobs.record import Job

LOOKED_AT, FAILURES_SHOWN, OWN_SHOWN = 300, 20, 20


def unseen_failures(reading: AuthorizedReading) -> list[Job]:
    """Of the latest failures, those that no one has looked at or retried. One more than a page shows, if there are. A
    viewer that may only answer questions sees none."""
    if not reading.lists_jobs:
        return []
    failed = islice(reading.select(JobFilter(query=Query(statuses=frozenset({ERROR})))), LOOKED_AT)
    return list(islice((job for job in failed if reading.registry.needs_look(job)), FAILURES_SHOWN + 1))


def jobs_for_people(reading: AuthorizedReading) -> list[Job]:
    """The open jobs whose agent is a person: the queue of their usual label, and those among the latest open jobs."""
    if not reading.lists_jobs:
        return []
    store = reading.registry.store
    queued = [reading.registry.get_exact(one.job_id) for one in store.queue(HUMAN)[:OWN_SHOWN]]
    latest = islice(reading.select(JobFilter(query=Query(statuses=OPEN))), LOOKED_AT)
    found = {job.job_id: job for job in [*queued, *latest] if job.agent == HUMAN and reading.may_see(job)}
    return list(found.values())[:OWN_SHOWN]


def waiting_count(reading: AuthorizedReading) -> int:
    """A viewer that may only answer has the questions alone."""
    try:
        count = len(reading.questions())
    except NotAllowed:
        return 0
    try:
        return count + min(FAILURES_SHOWN, len(unseen_failures(reading))) + len(jobs_for_people(reading))
    except NotAllowed:
        return count
