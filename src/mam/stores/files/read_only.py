"""Reading a registry that cannot be written: no lock, no index, just the files."""

from __future__ import annotations

import os

from mam.errors import BadRecord, UnknownJob
from mam.jobs.claiming import claim_order
from mam.jobs.rules import is_job_id
from mam.jobs.status import PENDING, RUNNING
from mam.stores.common import matches
from mam.stores.files.directory import Directory
from mam.stores.files.event_damage import is_complete
from mam.stores.files.event_log import read_events
from mam.stores.files.records import Records
from mam.stores.port import Problem, Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.change import Line
    from mam.jobs.record import Job


INCOMPLETE = "some events are missing; the next command that can write makes it anew from the journal"


class ReadOnlyView:
    def __init__(self, path: str) -> None:
        self._directory = Directory(path)
        self._records = Records(self._directory)

    def __enter__(self) -> ReadOnlyView:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._directory.close()

    def get(self, job_id: str) -> Job:
        try:
            return self._records.read(job_id).job
        except FileNotFoundError:
            raise UnknownJob(job=job_id, store=self._directory.path) from None

    def ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
        return sorted(job_id for job_id in self._ids() if job_id.startswith(prefix))[:limit]

    def children(self, job_id: str) -> list[str]:
        found = [job for job in self._matching(Query()) if job.parent_id == job_id]
        return [job.job_id for job in sorted(found, key=lambda job: job.number)]

    def chosen(self, query: Query) -> list[tuple[str, int]]:
        jobs = sorted(self._matching(query), key=lambda job: (-job.number, job.created_at, job.job_id))
        return [(job.job_id, job.number) for job in jobs]

    def ahead_of(self, job: Job) -> int:
        rivals = self._matching(Query(label=job.agent_session, statuses=frozenset({PENDING})))
        return sum(claim_order(rival) < claim_order(job) for rival in rivals)

    def newest(self, job_id: str) -> Job | None:
        retries = {job.retry_of: job for job in self._matching(Query()) if job.retry_of is not None}
        found = self._sound(job_id)
        while job_id in retries:
            found = retries[job_id]
            job_id = found.job_id
        return found

    def holder(self, key: str) -> str | None:
        running = self._matching(Query(statuses=frozenset({RUNNING})))
        return next((job.job_id for job in running if job.exclusive == key), None)

    def events(self, job_id: str) -> list[Line]:
        return read_events(self._directory.descriptor, job_id)

    def problems(self) -> list[Problem]:
        found = []
        for job_id in self._ids():
            try:
                job = self._records.read(job_id).job
            except BadRecord as bad:
                found.append(Problem(file=f"{job_id}.json", problem=str(bad.facts["problem"])))
            except FileNotFoundError:
                continue
            else:
                if not is_complete(self.events(job_id), job.last_seq):
                    found.append(Problem(file=f"{job_id}.events.log", problem=INCOMPLETE))
        return found

    def _matching(self, query: Query) -> list[Job]:
        return [job for job_id in self._ids() if (job := self._sound(job_id)) is not None and matches(query, job)]

    def _sound(self, job_id: str) -> Job | None:
        try:
            return self._records.read(job_id).job
        except (BadRecord, FileNotFoundError):
            return None

    def _ids(self) -> list[str]:
        names = os.listdir(self._directory.descriptor)
        return [name[:-5] for name in names if name.endswith(".json") and is_job_id(name[:-5])]
