"""The archive of ended jobs, and the import of jobs from another registry."""

from __future__ import annotations

import json
import sys

from mam.jobs.change import Change
from mam.jobs.summary import summarise
from mam.stores.common import archived_line, import_lines
from mam.stores.port import JobWithEvents
from mam.stores.sql.base import PAGE, SqlBase, events_in
from mam.stores.sql.compact import short_lines, short_record
from mam.stores.sql.rows import parse_row
from mam.util.encoding import to_json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mam.jobs.change import AuditRecord
    from mam.jobs.record import Job, Json


class SqlArchive(SqlBase):
    # -- ended jobs ------------------------------------------------------------------------------------------------

    def archive(self, job_ids: Sequence[str]) -> list[str]:
        self._in_transaction(self._archive, job_ids)
        archived = {row[0] for row in self._rows("which archived", job_ids=json.dumps(list(job_ids)))}
        return [job_id for job_id in job_ids if job_id in archived]

    def _archive(self, job_ids: Sequence[str]) -> None:
        """In a few queries, whatever the number of jobs."""
        moment = self._now()
        found = json.dumps([row[0] for row in self._rows("archivable", job_ids=json.dumps(list(job_ids)))])
        jobs = [parse_row(row, self.address).job for row in self._rows("jobs to change", job_ids=found)]
        self._each("insert archived", [self._archived_values(job, None) for job in jobs])
        self._rows("delete jobs", job_ids=found)
        for job in jobs:
            self._append_entry(job, 0, None, tuple(short_lines([archived_line(job.job_id, moment)])))

    def _insert_archived(self, batch: Sequence[JobWithEvents]) -> None:
        self._each("insert archived", [self._archived_values(one.job, one.events) for one in batch])

    def _archived_values(self, job: Job, events: list[AuditRecord] | None) -> Json:
        """Without events: the journal has those of a job that was archived here."""
        return {
            "job_id": job.job_id,
            "number": job.number,
            "key": job.key,
            "retry_of": job.retry_of,
            "continues": job.continues,
            "root": self._root_of(job),
            "record": to_json_text(short_record(job)),
            "events": to_json_text(events),
        }

    def summarise(self, job_ids: Sequence[str], below: int) -> int:
        return self._in_transaction(self._summarise, job_ids, below)

    def _summarise(self, job_ids: Sequence[str], below: int) -> int:
        entries: dict[int, list[tuple[int, Json | None, list[AuditRecord]]]] = {}
        found = self._rows("entries of archived", job_ids=json.dumps(list(job_ids)), below=below)
        for number, job, fields, lines in found:
            set_fields = None if fields is None else json.loads(fields)
            entries.setdefault(job, []).append((number, set_fields, json.loads(lines)))
        changes, gone = [], list[int]()
        for of_job in entries.values():
            if len(of_job) > 1:
                fields, lines = summarise(of_job)
                text = {"fields": to_json_text(fields), "lines": to_json_text(short_lines(lines))}
                changes.append({"number": of_job[-1][0], **text})
                gone += [number for number, _, _ in of_job[:-1]]
        self._each("replace entry", changes)
        self._rows("delete entries", numbers=json.dumps(gone))
        if gone:
            self._rows("save summarised", below=below)
        return len(gone)

    def unsummarised(self, below: int) -> list[str]:
        return [row[0] for row in self._rows("unsummarised", below=below)]

    def summarised_upto(self) -> int:
        return int(self._rows("summarised upto")[0][0])

    def consumers(self) -> dict[str, str]:
        return dict(self._rows("consumers"))

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
        job, known = self._parse_archived(record), json.loads(events)
        if known is None:
            lines = self._rows("lines of archived", number=job.number, job_id=job.job_id)
            known = events_in((text for (text,) in lines), job.job_id)
        return JobWithEvents(job=job, events=known)

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
