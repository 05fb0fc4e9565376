"""Ended jobs out of the way of the others, and jobs that come whole from another registry."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod

from mam.jobs.change import Change
from mam.jobs.record import parse_job
from mam.stores.common import archived_line, import_lines
from mam.stores.port import JobWithEvents
from mam.util.encoding import to_json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    from mam.jobs.change import AuditRecord
    from mam.jobs.record import Job, Json
    from mam.util.clock import Moment

    T = TypeVar("T")

PAGE = 500


class SqlArchive(ABC):
    """The part of an SQL store that claims and ends never touch."""

    address: str

    @abstractmethod
    def _in_transaction(self, do: Callable[..., T], *given: Any) -> T: ...

    @abstractmethod
    def _rows(self, query: str, **values: Any) -> list[Any]: ...

    @abstractmethod
    def _now(self) -> Moment: ...

    @abstractmethod
    def _insert(self, change: Change, root: str | None, moment: Moment) -> None: ...

    @abstractmethod
    def _append_entry(self, job: Job, version: int, fields: Json | None, lines: tuple[AuditRecord, ...]) -> None: ...

    @abstractmethod
    def get(self, job_id: str) -> Job: ...

    @abstractmethod
    def events(self, job_id: str) -> list[AuditRecord]: ...

    # -- ended jobs ------------------------------------------------------------------------------------------------

    def archive(self, job_ids: Sequence[str]) -> list[str]:
        self._in_transaction(self._archive, job_ids)
        archived = {row[0] for row in self._rows("which archived", job_ids=json.dumps(list(job_ids)))}
        return [job_id for job_id in job_ids if job_id in archived]

    def _archive(self, job_ids: Sequence[str]) -> None:
        moment = self._now()
        for (job_id,) in self._rows("archivable", job_ids=json.dumps(list(job_ids))):
            job = self.get(job_id)
            self._put_into_archive(JobWithEvents(job=job, events=self.events(job_id)))
            self._rows("delete job", job_id=job_id)
            self._append_entry(job, 0, None, (archived_line(job_id, moment),))

    def archived(self, job_id: str) -> JobWithEvents | None:
        rows = self._rows("archived", job_id=job_id)
        return self._kept(*rows[0]) if rows else None

    def archived_ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
        rows = self._rows("archived with prefix", prefix=prefix, behind=prefix + "\U0010ffff", limit=limit)
        return [row[0] for row in rows]

    def archive_contents(self, *, newest_first: bool = False) -> Iterator[JobWithEvents]:
        query = "archive newest first" if newest_first else "archive contents"
        place = sys.maxsize if newest_first else -sys.maxsize
        while rows := self._rows(query, place=place, limit=PAGE):
            for number, record, events in rows:
                place = number
                yield self._kept(record, events)

    def _kept(self, record: str, events: str) -> JobWithEvents:
        return JobWithEvents(job=self._archived_job(record), events=json.loads(events))

    def _archived_job(self, record: str) -> Job:
        return parse_job(json.loads(record), self.address)

    # -- jobs of another registry ------------------------------------------------------------------------------------

    def import_jobs(self, batch: Sequence[JobWithEvents], *, archived: bool = False) -> None:
        self._in_transaction(self._put_into_archive_all if archived else self._take_in_all, batch)

    def _take_in_all(self, batch: Sequence[JobWithEvents]) -> None:
        moment = self._now()
        for kept in batch:
            self._rows("delete job", job_id=kept.job.job_id)
            self._insert(Change(job=kept.job, lines=import_lines(kept, moment)), self._root_of(kept.job), moment)
        self._rows("advance numbers", number=max((kept.job.number for kept in batch), default=0))
        self._rows("mark all unsettled")  # some may wait for jobs that ended where they come from

    def _put_into_archive_all(self, batch: Sequence[JobWithEvents]) -> None:
        for kept in batch:
            self._put_into_archive(kept)

    def _put_into_archive(self, kept: JobWithEvents) -> None:
        job = kept.job
        self._rows(
            "insert archived",
            job_id=job.job_id,
            number=job.number,
            key=job.key,
            retry_of=job.retry_of,
            root=self._root_of(job),
            record=to_json_text(job.to_json()),
            events=to_json_text(kept.events),
        )

    def _root_of(self, job: Job) -> str | None:
        return None if job.retry_of is None else str(self._rows("root", job_id=job.retry_of)[0][0])
