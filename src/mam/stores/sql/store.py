"""The port in terms of named queries. A database says how it connects, begins and waits; everything else is here."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod

from mam.errors import AlreadyRegistered, UnknownJob
from mam.jobs import acts
from mam.jobs.status import Status
from mam.jobs.sweep import SWEEP_LIMIT, settle
from mam.stores.common import changed_fields, event_of
from mam.stores.port import Registration
from mam.stores.sql.rows import as_text, job_of, job_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from mam.clock import Clock, Moment
    from mam.jobs.change import Change, Line
    from mam.jobs.record import Job
    from mam.stores.port import Act, Problem, Query, Request

    T = TypeVar("T")

PAGE = 500
"""Rows asked for at once: a long list never holds the database's old pages back."""

UPDATED = ("job_id", "status", "due_ms", "boot_id", "boot_ms", "record")


class SqlStore(ABC):
    """Half of a store; `_act`, `_rows`, `_moment` and the journal's own order are the other half."""

    address: str
    clock: Clock
    home: str | None = None

    # -- what a database adds ----------------------------------------------------------------------------------------

    @abstractmethod
    def _act(self, do: Callable[[], T]) -> T:
        """Runs `do` in one transaction that is durable when this returns; what it raises undoes everything."""

    @abstractmethod
    def _rows(self, query: str, **values: Any) -> list[Any]:
        """What a named query answers."""

    @abstractmethod
    def _moment(self) -> Moment:
        """The time by which this database judges leases."""

    @property
    def journal_id(self) -> str:
        return str(self._value("journal id"))

    # -- changing --------------------------------------------------------------------------------------------------

    def register(self, draft: Job) -> Registration:
        def do() -> Registration:
            known = self._registered_before(draft)
            if known is not None:
                return Registration(job=known, created=False)
            if self._job("job", job_id=draft.job_id) is not None:
                raise AlreadyRegistered(job=draft.job_id)
            change = acts.register(draft, int(self._value("next number")), self._moment())
            self._write(None, change)
            return Registration(job=change.job, created=True)

        return self._act(do)

    def change(self, job_id: str, act: Act) -> Job:
        def do() -> Job:
            job = self._existing(job_id, "job to change")
            change = act(job, self._moment())
            self._write(job, change)
            return change.job

        return self._act(do)

    def claim(self, request: Request) -> Job | None:
        """What is due is settled in a transaction of its own: entries of one job must not be written by a transaction
        that is older than the one that registered it, or followers would meet them in the wrong order."""
        claimed, settled = self._act(lambda: self._settle_or_claim(request))
        return self._act(lambda: self._claim(request)) if settled else claimed

    def _settle_or_claim(self, request: Request) -> tuple[Job | None, bool]:
        if self._settle(self._moment()):
            return None, True
        return self._claim(request), False

    def _claim(self, request: Request) -> Job | None:
        job = self._job("first pending", label=request.label)
        if job is None:
            return None
        change = acts.claim(job, self._moment(), owner=request.owner, lease_seconds=request.lease_seconds)
        self._write(job, change)
        return change.job

    def sweep(self) -> list[Job]:
        return self._act(lambda: self._settle(self._moment()))

    # -- reading ---------------------------------------------------------------------------------------------------

    def get(self, job_id: str) -> Job:
        return self._existing(job_id)

    def ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
        rows = self._rows("ids with prefix", prefix=prefix, behind=prefix + "\U0010ffff", limit=limit)
        return [row[0] for row in rows]

    def select(self, query: Query) -> Iterator[Job]:
        below = sys.maxsize
        statuses = list(Status) if query.statuses is None else sorted(query.statuses)
        asked = {"label": query.label, "since": query.since, "statuses": json.dumps(statuses), "limit": PAGE}
        while rows := self._rows("select", below=below, **asked):
            for record, prompt in rows:
                job = job_of(record, prompt, self.address)
                below = job.number
                yield job

    def ahead_of(self, job: Job) -> int:
        return int(self._value("ahead", label=job.agent_session, priority=job.priority, number=job.number))

    def problems(self) -> list[Problem]:
        return []

    def events(self, job_id: str) -> list[Line]:
        return [json.loads(row[0]) for row in self._rows("events", job_id=job_id)]

    def due_in(self) -> float | None:
        moment = self._moment()
        times = [
            self._value("next due by boot clock", boot_id=moment.boot_id, boot_ms=moment.boot_ms),
            self._value("next due by wall clock", boot_id=moment.boot_id, wall_ms=moment.wall_ms),
        ]
        known = [int(time) for time in times if time is not None]
        return max(0, min(known)) / 1000 if known else None

    # -- shared ----------------------------------------------------------------------------------------------------

    def _settle(self, moment: Moment) -> list[Job]:
        """What time has decided, for a bounded number of jobs, longest due first."""
        clocks = {"boot_id": moment.boot_id, "limit": SWEEP_LIMIT}
        due = [
            *self._rows("due by boot clock", boot_ms=moment.boot_ms, **clocks),
            *self._rows("due by wall clock", wall_ms=moment.wall_ms, **clocks),
        ]
        due.sort(key=lambda row: -int(row[0]))
        settled = []
        for _late, record, prompt in due[:SWEEP_LIMIT]:
            job = job_of(record, prompt, self.address)
            change = settle(job, moment)
            self._write(job, change)
            settled.append(change.job)
        return settled

    def _write(self, before: Job | None, change: Change) -> None:
        """Record, history and events of one change, in the transaction that is open."""
        if not change.lines:
            return
        job, fields = change.job, change.job.to_json()
        values = job_values(job, fields)
        if before is None:
            self._run("insert job", **values)
            self._run("insert prompt", job_id=job.job_id, prompt=job.prompt)
        else:
            self._run("update job", **{name: values[name] for name in UPDATED})
        self._append(job.job_id, as_text(changed_fields(before, fields)), as_text(list(change.lines)))
        for event in filter(None, map(event_of, change.lines)):
            self._run("insert event", job_id=job.job_id, seq=event["seq"], event=as_text(event))

    def _append(self, job_id: str, fields: str, lines: str) -> None:
        self._run("insert entry", job_id=job_id, fields=fields, lines=lines)

    def _registered_before(self, draft: Job) -> Job | None:
        known = self._job("job with key", key=draft.key) if draft.key is not None else None
        if known is None and draft.retry_of is not None:
            known = self._job("job that retries", retry_of=draft.retry_of)
        return known

    def _existing(self, job_id: str, query: str = "job") -> Job:
        job = self._job(query, job_id=job_id)
        if job is None:
            raise UnknownJob(job=job_id, store=self.address)
        return job

    def _job(self, query: str, **values: Any) -> Job | None:
        rows = self._rows(query, **values)
        return job_of(rows[0][0], rows[0][1], self.address) if rows else None

    def _value(self, query: str, **values: Any) -> Any:
        return self._rows(query, **values)[0][0]

    def _run(self, query: str, **values: Any) -> None:
        self._rows(query, **values)
