"""The filters of a list of jobs: the same words for the command line, the API and the page."""

from __future__ import annotations

from mam.errors import BadInput
from mam.jobs.status import ERROR
from mam.stores.port import Query
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.jobs.record import Job
    from mam.registry.reading import ReadingRegistry


class JobFilter(Frozen):
    """Which jobs; None means any."""

    query: Query = Query()
    agent: str | None = None
    host: str | None = None
    """The host on which the latest attempt runs, or ran."""
    search: str | None = None
    """Text in the prompt, the result or the reason, in any case of letters."""
    unseen: bool = False
    """Only failures that were neither retried nor seen."""
    archived: bool = False

    def matches(self, job: Job) -> bool:
        """Whether the job has what a query does not ask the store for."""
        if self.agent is not None and job.agent != self.agent:
            return False
        if self.host is not None and job.host != self.host:
            return False
        if self.search is None:
            return True
        wanted = self.search.casefold()
        return any(wanted in text.casefold() for text in (job.prompt, job.result, job.reason) if text)


def check_filter(*, unseen: bool, archived: bool, statuses: bool) -> None:
    if unseen and (archived or statuses):
        raise BadInput(why="--unseen goes with neither --status nor --archived")


def filtered_jobs(registry: ReadingRegistry, wanted: JobFilter) -> Iterator[Job]:
    """The jobs that match, newest first."""
    return (job for job in candidate_jobs(registry, wanted) if wanted.matches(job))


def candidate_jobs(registry: ReadingRegistry, wanted: JobFilter) -> Iterator[Job]:
    """The jobs among which `wanted.matches` decides, newest first."""
    query = wanted.query
    if wanted.archived:
        return registry.select_archived(query)
    if wanted.unseen:
        return filter(registry.needs_look, registry.select(query.replace(statuses=frozenset({ERROR}))))
    return registry.select(query)
