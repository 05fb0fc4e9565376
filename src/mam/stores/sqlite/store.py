"""The port, on SQLite: each act is one immediate transaction, durable when it commits."""

from __future__ import annotations

import json
import os
import sys
from _thread import RLock

import apsw

from mam.clock import SystemClock
from mam.errors import AlreadyRegistered, UnknownJob
from mam.jobs import acts
from mam.jobs.status import Status
from mam.jobs.sweep import SWEEP_LIMIT, settle
from mam.stores.common import changed_fields, event_of
from mam.stores.port import Entry, Registration
from mam.stores.sql.queries import load_queries
from mam.stores.sql.rows import as_text, job_of, job_values
from mam.stores.sqlite.database import address_of, create_database, open_database, unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from mam.clock import Clock, Moment
    from mam.jobs.change import Change, Line
    from mam.jobs.record import Job
    from mam.stores.port import Act, Problem, Query, Request
    from mam.stores.watch import Watch

    T = TypeVar("T")

WAIT_SECONDS = 10.0
PAGE = 500

_QUERIES = load_queries(__file__)


def create_sqlite_store(path: str) -> bool:
    """Makes the database if there is none, or brings an older one up to date; whether it did."""
    return create_database(os.path.realpath(path), SystemClock().new_id())


class SqliteStore:
    """A registry in one database file of one host. Threads and processes may share it; a fork opens its own."""

    home = None

    def __init__(self, path: str, clock: Clock | None = None, lock_wait_seconds: float = WAIT_SECONDS) -> None:
        self._path = os.path.realpath(path)
        self.address = address_of(self._path)
        self._bell = f"{self._path}-bell"
        self.clock: Clock = clock or SystemClock()
        self._wait_seconds = lock_wait_seconds
        self._threads = RLock()
        self._process = os.getpid()
        self._database = open_database(self._path, lock_wait_seconds)
        self._watch: Watch | None = None

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
            change = acts.register(draft, int(self._value("next number")), self.clock.now())
            self._write(None, change)
            return Registration(job=change.job, created=True)

        return self._act(do)

    def change(self, job_id: str, act: Act) -> Job:
        def do() -> Job:
            job = self._existing(job_id)
            change = act(job, self.clock.now())
            self._write(job, change)
            return change.job

        return self._act(do)

    def claim(self, request: Request) -> Job | None:
        def do() -> Job | None:
            moment = self.clock.now()
            self._settle(moment)
            job = self._job("first pending", label=request.label)
            if job is None:
                return None
            change = acts.claim(job, moment, owner=request.owner, lease_seconds=request.lease_seconds)
            self._write(job, change)
            return change.job

        return self._act(do)

    def sweep(self) -> list[Job]:
        return self._act(lambda: self._settle(self.clock.now()))

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

    # -- the journal -----------------------------------------------------------------------------------------------

    def end(self) -> str:
        return str(self._value("last entry"))

    def entries(self, cursor: str | None) -> Iterator[Entry]:
        after, upto = int(cursor or 0), int(self.end())
        while rows := self._rows("entries", after=after, upto=upto, limit=PAGE):
            for number, job_id, fields, lines in rows:
                after = number
                yield Entry(
                    cursor=str(number),
                    number=number,
                    job_id=job_id,
                    fields=None if fields is None else json.loads(fields),
                    lines=tuple(json.loads(lines)),
                )

    def wait(self, cursor: str, timeout: float) -> bool:
        if self._watch is None:
            from mam.stores.watch import Watch, written

            self._watch = Watch(os.path.dirname(self._path), written(os.path.basename(self._bell)))
            return True  # something may have happened before the watch began: look once more
        return self.end() != cursor or self._watch.wait(timeout)

    def due_in(self) -> float | None:
        moment = self.clock.now()
        times = [
            self._value("next due by boot clock", boot_id=moment.boot_id, boot_ms=moment.boot_ms),
            self._value("next due by wall clock", boot_id=moment.boot_id, wall_ms=moment.wall_ms),
        ]
        known = [int(time) for time in times if time is not None]
        return max(0, min(known)) / 1000 if known else None

    def close(self) -> None:
        with self._threads:
            if self._watch is not None:
                self._watch.close()
                self._watch = None
            if self._process == os.getpid():
                self._database.close()

    # -- shared ----------------------------------------------------------------------------------------------------

    def _act(self, do: Callable[[], T]) -> T:
        with self._threads:
            self._run("begin")
            before = self._database.total_changes()
            try:
                done = do()
                self._run("commit")
            except BaseException:
                if self._database.in_transaction:
                    self._run("roll back")
                raise
            if self._database.total_changes() != before:
                self._ring()
            return done

    def _ring(self) -> None:
        """Wakes those who wait. The log's own file would wake them too early: before others can see what it holds."""
        try:
            descriptor = os.open(self._bell, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            os.pwrite(descriptor, b"\n", 0)
            os.close(descriptor)
        except OSError:
            pass  # nobody waits longer than a nap

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
            names = ("job_id", "status", "due_ms", "boot_id", "boot_ms", "record")
            self._run("update job", **{name: values[name] for name in names})
        changed = as_text(changed_fields(before, fields))
        self._run("insert entry", job_id=job.job_id, fields=changed, lines=as_text(list(change.lines)))
        for event in filter(None, map(event_of, change.lines)):
            self._run("insert event", job_id=job.job_id, seq=event["seq"], event=as_text(event))

    def _registered_before(self, draft: Job) -> Job | None:
        known = self._job("job with key", key=draft.key) if draft.key is not None else None
        if known is None and draft.retry_of is not None:
            known = self._job("job that retries", retry_of=draft.retry_of)
        return known

    def _existing(self, job_id: str) -> Job:
        job = self._job("job", job_id=job_id)
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

    def _rows(self, query: str, **values: Any) -> list[Any]:
        with self._threads:
            if self._process != os.getpid():
                # A child must not use its parent's connection, nor close it.
                self._database, self._watch = open_database(self._path, self._wait_seconds), None
                self._process = os.getpid()
            try:
                return self._database.execute(_QUERIES[query], values).fetchall()
            except apsw.Error as error:
                raise unavailable(self._path, error, self._wait_seconds) from None
