"""The archive of ended jobs, and the import of jobs from another registry."""

from __future__ import annotations

import json
import sys

from mam.jobs.change import Change
from mam.stores.common import archived_line, import_lines
from mam.stores.port import JobWithEvents
from mam.stores.sql.base import PAGE, SqlBase
from mam.util.encoding import to_json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class SqlArchive(SqlBase):
    # -- ended jobs ------------------------------------------------------------------------------------------------

    def archive(self, job_ids: Sequence[str]) -> list[str]:
        self._in_transaction(self._archive, job_ids)
        archived = {row[0] for row in self._rows("which archived", job_ids=json.dumps(list(job_ids)))}
        return [job_id for job_id in job_ids if job_id in archived]

    def _archive(self, job_ids: Sequence[str]) -> None:
        moment = self._now()
        for (job_id,) in self._rows("archivable", job_ids=json.dumps(list(job_ids))):
            job = self.get(job_id)
            self._insert_archived([JobWithEvents(job=job, events=self.events(job_id))])
            self._rows("delete job", job_id=job_id)
            self._append_entry(job, 0, None, (archived_line(job_id, moment),))

    def _insert_archived(self, batch: Sequence[JobWithEvents]) -> None:
        for one in batch:
            job = one.job
            self._rows(
                "insert archived",
                job_id=job.job_id,
                number=job.number,
                key=job.key,
                retry_of=job.retry_of,
                continues=job.continues,
                root=self._root_of(job),
                record=to_json_text(job.to_json()),
                events=to_json_text(one.events),
            )

    def archived(self, job_id: str) -> JobWithEvents | None:
        rows = self._rows("archived", job_id=job_id)
        return self._parse_archived_row(*rows[0]) if rows else None

    def archived_ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
        rows = self._rows("archived with prefix", prefix=prefix, behind=prefix + "\U0010ffff", limit=limit)
        return [row[0] for row in rows]

    def archive_contents(self, *, newest_first: bool = False) -> Iterator[JobWithEvents]:
        query = "archive newest first" if newest_first else "archive contents"
        last = sys.maxsize if newest_first else -sys.maxsize
        while rows := self._rows(query, last=last, limit=PAGE):
            for number, record, events in rows:
                last = number
                yield self._parse_archived_row(record, events)

    def _parse_archived_row(self, record: str, events: str) -> JobWithEvents:
        return JobWithEvents(job=self._parse_archived(record), events=json.loads(events))

    # -- jobs of another registry ------------------------------------------------------------------------------------

    def import_jobs(self, batch: Sequence[JobWithEvents], *, archived: bool = False) -> None:
        self._in_transaction(self._insert_archived if archived else self._import_jobs, batch)

    def _import_jobs(self, batch: Sequence[JobWithEvents]) -> None:
        moment = self._now()
        for one in batch:
            self._rows("delete job", job_id=one.job.job_id)
            self._insert(Change(job=one.job, lines=import_lines(one, moment)), moment)
        self._rows("advance numbers", number=max((one.job.number for one in batch), default=0))
        self._rows("mark all unsettled")  # some may depend on jobs that ended in the other registry
