"""What every part of an SQL store needs: one job by its id, its row and journal entry written together, the journal.

A database adds how it connects, begins, commits and waits: the abstract methods.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

from mam.errors import UnknownJob
from mam.jobs.record import parse_job
from mam.stores.common import changed_fields, event_in_line
from mam.stores.port import Entry
from mam.stores.sql.blocking import Blocking
from mam.stores.sql.compact import entry_fields, short_record, whole_lines, whole_record
from mam.stores.sql.rows import column_values, parse_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar

    from mam.jobs.change import AuditRecord, Change
    from mam.jobs.record import Job, Json
    from mam.stores.sql.rows import Row
    from mam.util.clock import Moment

    T = TypeVar("T")

PAGE = 500
ORDER_FIELDS = {"agent_session", "agent", "priority"}
"""Fields that decide when a job is claimed. Only `mam adopt` and a person who edits a job change them."""


class SqlBase(ABC):
    address: str

    # -- what a database adds ----------------------------------------------------------------------------------------

    @abstractmethod
    def _in_transaction(self, do: Callable[..., T], *given: Any) -> T:
        """Calls `do` in one transaction, which is durable when this returns; an exception rolls it back."""

    @abstractmethod
    def _rows(self, query: str, **values: Any) -> list[Any]:
        """Runs a named query, in the open transaction if there is one."""

    @abstractmethod
    def _now(self) -> Moment:
        """The time that decides about leases in this database."""

    @abstractmethod
    def _append_entry(self, job: Job, version: int, fields: Json | None, lines: tuple[AuditRecord, ...]) -> None:
        """Appends to the journal, in the open transaction. `version` is that of the row now, 0 when it is gone."""

    def _each(self, query: str, values: list[Json]) -> None:
        """Runs a query for each set of values, in the open transaction."""
        for one in values:
            self._rows(query, **one)

    @property
    def _blocking(self) -> Blocking:
        return Blocking(self._rows)

    # -- one job -----------------------------------------------------------------------------------------------------

    def get(self, job_id: str) -> Job:
        job = self._job("job", job_id=job_id)
        if job is None:
            raise UnknownJob(job=job_id, store=self.address)
        return job

    def _job(self, query: str, **values: Any) -> Job | None:
        rows = self._rows(query, **values)
        return parse_row(rows[0], self.address).job if rows else None

    def events(self, job_id: str) -> list[AuditRecord]:
        return events_in((text for (text,) in self._rows("lines of job", job_id=job_id)), job_id)

    def newest(self, job_id: str) -> Job | None:
        found = self._rows("newest", root=self._root(job_id))
        if not found:
            return None
        (newest,) = found[0]
        job = self._job("job", job_id=newest)
        return job if job is not None else self._parse_archived(self._rows("archived", job_id=newest)[0][0])

    def _root(self, job_id: str) -> str:
        """The first job of the chain of retries that a job belongs to."""
        return str(self._rows("root", job_id=job_id)[0][0])

    def _root_of(self, job: Job) -> str | None:
        return None if job.retry_of is None else self._root(job.retry_of)

    def _parse_archived(self, record: str) -> Job:
        return parse_job(whole_record(json.loads(record)), self.address)

    # -- row and journal entry ---------------------------------------------------------------------------------------

    def _insert(self, change: Change, moment: Moment) -> None:
        job = change.job
        root = self._root_of(job)
        awaited = bool(self._rows("is awaited", root=root or job.job_id))
        self._insert_row({**column_values(job, moment), "root": root, "awaited": awaited, "prompt": job.prompt})
        self._append_entry(job, 1, short_record(job), change.lines)
        self._blocking.after_write(None, job, root, awaited=awaited)

    def _insert_row(self, values: Json) -> None:
        self._rows("insert job", **values)

    def _write(self, row: Row, change: Change, moment: Moment) -> Job:
        """Writes the row and the journal entry of one change, in the open transaction. Returns the job after it."""
        job = change.job
        if not change.lines:
            return job
        fields = changed_fields(row.job, change)
        self._rows("update job", **column_values(job, moment), version=row.version)
        if fields.keys() & ORDER_FIELDS:
            order = {"label": job.agent_session, "agent": job.agent, "priority": job.priority}
            self._rows("update queue order", number=job.number, **order)
        if "prompt" in fields:
            self._rows("update prompt", number=job.number, prompt=job.prompt)
        self._append_entry(job, row.version + 1, fields, change.lines)
        self._blocking.after_write(row.job, job, row.root, awaited=row.awaited)
        return job

    # -- the journal -------------------------------------------------------------------------------------------------

    def end_offset(self) -> str:
        return str(self._last_number())

    def _offset(self, number: int) -> str:
        return str(number)

    def _last_number(self) -> int:
        return int(self._rows("last entry")[0][0])

    def _entry_rows(self, after: int, upto: int) -> list[Any]:
        return self._rows("entries", after=after, upto=upto, limit=PAGE)

    def entries(self, offset: str | None) -> Iterator[Entry]:
        after, upto = int(offset or 0), self._last_number()
        while rows := self._entry_rows(after, upto):
            for number, job_id, fields, lines in rows:
                after = number
                yield Entry(
                    offset=self._offset(number),
                    number=number,
                    job_id=job_id,
                    fields=None if fields is None else entry_fields(json.loads(fields)),
                    lines=tuple(whole_lines(json.loads(lines), job_id)),
                )
            if len(rows) < PAGE:
                return


def events_in(texts: Iterable[str], job_id: str) -> list[AuditRecord]:
    """The events in the lines of a job's entries. A `migrated` entry holds all events of an imported job; what came
    before it does not count."""
    lines: list[AuditRecord] = []
    for text in texts:
        found = whole_lines(json.loads(text), job_id)
        lines = found if found[0]["event"] == "migrated" else lines + found
    return [event for event in map(event_in_line, lines) if event is not None]
