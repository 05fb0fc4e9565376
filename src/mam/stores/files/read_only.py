"""Reading a registry that cannot be written: no lock, no index, just the files."""

from __future__ import annotations

import os

from mam.errors import BadRecord, UnknownJob
from mam.jobs.rules import is_job_id
from mam.stores.common import matches
from mam.stores.files.directory import Directory
from mam.stores.files.records import Records
from mam.stores.port import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.jobs.record import Job
    from mam.stores.port import Query


class ReadOnlyView:
    def __init__(self, path: str) -> None:
        self._directory = Directory(path)
        self._records = Records(self._directory)

    def get(self, job_id: str) -> Job:
        try:
            return self._records.read(job_id).job
        except FileNotFoundError:
            raise UnknownJob(job=job_id, store=self._directory.path) from None

    def ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
        return sorted(job_id for job_id in self._ids() if job_id.startswith(prefix))[:limit]

    def select(self, query: Query) -> Iterator[Job]:
        jobs = [job for job_id in self._ids() if (job := self._sound(job_id)) is not None and matches(query, job)]
        yield from sorted(jobs, key=lambda job: (-job.number, job.created_at, job.job_id))

    def problems(self) -> list[Problem]:
        found = []
        for job_id in self._ids():
            try:
                self._records.read(job_id)
            except BadRecord as bad:
                found.append(Problem(file=f"{job_id}.json", problem=str(bad.facts["problem"])))
            except FileNotFoundError:
                continue
        return found

    def _sound(self, job_id: str) -> Job | None:
        try:
            return self._records.read(job_id).job
        except (BadRecord, FileNotFoundError):
            return None

    def _ids(self) -> list[str]:
        names = os.listdir(self._directory.descriptor)
        return [name[:-5] for name in names if name.endswith(".json") and is_job_id(name[:-5])]
