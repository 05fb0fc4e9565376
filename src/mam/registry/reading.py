"""The verbs that read jobs: find, show, explain. Every verb is a process, so a method imports what only it needs."""

from __future__ import annotations

import os
import sys
from itertools import islice

from mam.errors import AmbiguousId, UnknownJob
from mam.jobs import input_rules
from mam.jobs.status import ERROR, OPEN, PENDING, RUNNING, WAITING
from mam.stores.port import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from mam.jobs.activity import State
    from mam.jobs.change import AuditRecord
    from mam.jobs.explain import ExplainContext
    from mam.jobs.overview import Overview, Relative
    from mam.jobs.record import Job
    from mam.jobs.workers import Holder, WorkerEntry
    from mam.stores.port import Store

CANDIDATES_SHOWN = 10
FEW_JOBS = 50
"""How many jobs of a label mam reads to see whether it was ever served."""
MANY_JOBS, COUNTED_MS = 100_000, 10_000
"""Counts of so many jobs are kept for this long."""


class ReadingRegistry:
    """Verbs that only read."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._counted: tuple[int, dict[str, int]] | None = None

    def resolve(self, text: str) -> str:
        """The one job id that begins with `text`. An exact match wins over longer ids."""
        if not input_rules.is_job_id(text):
            raise UnknownJob(job=repr(text[:80]), store=self.store.address)
        found = self.store.ids_with_prefix(text, CANDIDATES_SHOWN + 1)
        found = found or self.store.archived_ids_with_prefix(text, CANDIDATES_SHOWN + 1)
        return only_match(text, found, self.store.address)

    def get(self, job: str) -> Job:
        """The job, also from the archive. Scripts give whole ids, so prefixes are resolved only when no id matches."""
        if input_rules.is_job_id(job):
            try:
                return self.get_exact(job)
            except UnknownJob:
                pass
        return self.get_exact(self.resolve(job))

    def get_exact(self, job_id: str) -> Job:
        """The job with exactly this id, also from the archive."""
        try:
            return self.store.get(job_id)
        except UnknownJob:
            kept = self.store.archived(job_id)
            if kept is None:
                raise
            return kept.job

    def events(self, job: str) -> list[AuditRecord]:
        """The events of a job, also from the archive."""
        found = self.get(job)
        kept = self.store.archived(found.job_id) if found.status.ended else None
        return self.store.events(found.job_id) if kept is None else kept.events

    def counts(self) -> dict[str, int]:
        """The number of jobs of each status. Counting very many takes long, so those may be some seconds old."""
        now_ms = self.store.clock.now().wall_ms
        if self._counted is not None and 0 <= now_ms - self._counted[0] < COUNTED_MS:
            return self._counted[1]
        found = self.store.counts()
        self._counted = (now_ms, found) if sum(found.values()) >= MANY_JOBS else None
        return found

    def select(self, query: Query) -> Iterator[Job]:
        return self.store.select(query)

    def open_jobs(self, labels: Iterable[str]) -> Iterator[Job]:
        """The jobs of these labels that have not ended."""
        for label in labels:
            yield from self.store.select(Query(statuses=OPEN, label=label))

    def select_archived(self, query: Query) -> Iterator[Job]:
        """As `select`, among archived jobs."""
        from mam.stores.common import matches

        found = (kept.job for kept in self.store.archive_contents(newest_first=True))
        return (job for job in found if matches(query, job))

    def explain(self, job: str, may_name: Callable[[str], bool] | None = None) -> tuple[Job, list[str]]:
        """The sentences name no job for which `may_name` is false."""
        from mam.jobs.explain import explain

        found = self.get(job)
        around = self._around(found)
        if may_name is not None:
            around = around.hiding(may_name)
        return found, explain(found, self.store.clock.now(), around)

    def hindrances(self, job: Job) -> list[str]:
        """Only what keeps it from running now."""
        from mam.jobs.explain import hindrances

        if job.status not in (PENDING, WAITING):
            return []
        return hindrances(job, self.store.clock.now(), self._around(job))

    def _around(self, found: Job) -> ExplainContext:
        from mam.jobs.explain import ExplainContext
        from mam.jobs.pause import blocking_pause

        holder = self.store.holder(found.exclusive) if found.exclusive is not None else None
        workers = [worker for worker in self.live_workers() if worker.serves(found)] if found.status is PENDING else []
        return ExplainContext(
            ahead=self.store.ahead_of(found),
            holder=None if holder == found.job_id else holder,
            pause=blocking_pause(self.store.pauses(), found, self.store.clock.now()),
            needed={job_id: self.store.newest(job_id) for job_id in found.after},
            last_event=self._last_event(found),
            host=os.uname().nodename,
            workers=tuple(worker.name for worker in workers),
            has_able_worker=any(worker.is_able(found) for worker in workers),
            was_claimed=bool(workers) or self._was_claimed(found.agent_session),
        )

    def never_served(self, job: Job) -> str | None:
        """The sentence for the user if the job is the first of its label and no worker serves that."""
        label = job.agent_session
        is_first = len(list(islice(self.store.select(Query(label=label)), 2))) == 1
        if not is_first or any(worker.serves(job) for worker in self.live_workers()):
            return None
        from mam.jobs.explain import unserved

        return unserved(label, was_claimed=False)

    def _was_claimed(self, label: str) -> bool:
        """Whether a job of the label was ever claimed. With many jobs the answer is yes without a look at them."""
        newest = list(islice(self.store.select(Query(label=label)), FEW_JOBS + 1))
        return len(newest) > FEW_JOBS or any(job.attempt for job in newest)

    def overview(self, job: str, may_name: Callable[[str], bool] | None = None) -> Overview:
        """Everything about a job that a person asks for first."""
        from mam.jobs.overview import Overview

        found, why = self.explain(job, may_name)
        children = self.store.children(found.job_id)
        relatives = [
            self._relative("retry_of", found.retry_of),
            self._relative("retried_as", found.job_id if self.is_retried(found) else None),
            self._relative("parent", found.parent_id),
            *(self._relative("after", job_id) for job_id in found.after),
            *(self._relative("child", job_id) for job_id in children[:CANDIDATES_SHOWN]),
        ]
        chain = tuple(relative for relative in relatives if relative is not None)
        return Overview(job=found, why=why, state=self.state(found), chain=chain, children=len(children))

    def _relative(self, relation: str, job_id: str | None) -> Relative | None:
        """Another job, as it is now; `retried_as` is the last retry."""
        from mam.jobs.overview import Relative

        if job_id is None:
            return None
        try:
            found = self.store.newest(job_id) if relation == "retried_as" else self.get_exact(job_id)
        except UnknownJob:
            found = None
        return Relative(
            relation=relation,
            job_id=job_id if found is None else found.job_id,
            status=None if found is None else found.status,
        )

    def state(self, job: Job) -> State:
        """What its agent is doing, according to which source, and since when."""
        from mam.jobs.activity import job_state

        return job_state(job, self._last_event(job), self.store.clock.now())

    def _last_event(self, job: Job) -> dict[str, Any] | None:
        if job.status is not RUNNING:
            return None
        return next((line for line in reversed(self.store.events(job.job_id)) if "event" in line), None)

    def is_retried(self, job: Job) -> bool:
        newest = self.store.newest(job.job_id)
        return newest is not None and newest.job_id != job.job_id

    def needs_look(self, job: Job) -> bool:
        """Whether it failed, and a person has neither looked at it nor retried it."""
        return job.status is ERROR and job.seen is None and not self.is_retried(job)

    def pending_count(self, label: str) -> int:
        """The number of pending jobs before the last possible one. The index answers this query at once."""
        from mam.jobs.draft import draft_job

        last = draft_job(job_id="last", prompt="last", agent=label, priority=-1000).replace(number=sys.maxsize)
        return self.store.ahead_of(last)

    def live_workers(self) -> list[WorkerEntry]:
        now = self.store.clock.now()
        return sorted(
            (worker for worker in self.store.workers() if worker.is_live(now)), key=lambda worker: worker.name
        )

    def holders(self) -> list[Holder]:
        """The live workers, and the owners of claims that no live worker has, each with the jobs that they hold."""
        from mam.jobs.workers import holders

        return holders(self.live_workers(), self.store.select(Query(statuses=frozenset({RUNNING}))))


def only_match(text: str, found: list[str], where: str) -> str:
    """The id that equals `text`, or the only one that begins with it."""
    if text in found or len(found) == 1:
        return text if text in found else found[0]
    if not found:
        raise UnknownJob(job=text, store=where)
    more = " …" if len(found) > CANDIDATES_SHOWN else ""
    raise AmbiguousId(prefix=text, candidates=found[:CANDIDATES_SHOWN], more=more)
