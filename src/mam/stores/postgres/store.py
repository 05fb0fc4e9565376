"""The port on PostgreSQL: a claim is one statement, an end is one, every other act on one job is a read and a write.

Acts that involve several jobs (exclusive keys, dependencies, retries, sweeps, sessions) run in a transaction of the
base class. Order of locks: exclusive keys, chains of retries, rows, and the journal last.
"""

from __future__ import annotations

import json
import sys

import psycopg

from mam.errors import AlreadyRegistered, BadRecord, MamError, StoreUnavailable, UnknownJob
from mam.jobs import acts
from mam.jobs.ending import end
from mam.jobs.sweep import SWEEP_LIMIT
from mam.stores.common import changed_fields, new_claim_id
from mam.stores.port import Registration
from mam.stores.postgres.client import QUERIES, Client
from mam.stores.postgres.connection import Server
from mam.stores.postgres.journal_memory import JournalMemory
from mam.stores.postgres.ownership import stores_elsewhere
from mam.stores.postgres.schema import check_version, create_schema
from mam.stores.postgres.statement_values import claim_values, end_values
from mam.stores.sql.base import ORDER_FIELDS
from mam.stores.sql.compact import short_record
from mam.stores.sql.rows import column_values, parse_row
from mam.stores.sql.store import SqlStore
from mam.util.clock import Moment, SystemClock
from mam.util.encoding import to_bytes
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    from mam.jobs.change import AuditRecord
    from mam.jobs.dependency import Dependencies
    from mam.jobs.ending import End
    from mam.jobs.record import Job, Json
    from mam.stores.interest import Interest
    from mam.stores.outputs import Outputs
    from mam.stores.port import Act, ClaimRequest, Entry
    from mam.stores.postgres.connection import Connection
    from mam.stores.sql.rows import Row
    from mam.util.clock import Clock

    T = TypeVar("T")

MANY = 20
"""From so many rows on, one statement writes all of them."""

MISSES = 3
"""After this many lost races an act locks the row."""


def create_postgres_store(url: str, *, filling: bool = False) -> bool:
    """Creates the schema or upgrades an older one. Returns whether it did either."""
    return create_schema(Server(url), SystemClock().new_id(), filling=filling)


class ServerClock:
    """The server's time decides about leases; ids and random numbers are local."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._local = SystemClock()

    def now(self) -> Moment:
        return Moment(wall_ms=int(self._client.rows("now", {})[0][0]))

    def new_id(self) -> str:
        return self._local.new_id()

    def chance(self) -> float:
        return self._local.chance()


class ServerReport(Frozen):
    """What `mam doctor` reports about the server."""

    is_pooled: bool
    hears: bool
    """Whether notifications get through."""
    elsewhere: tuple[str, ...]
    """Other schemas of the database that hold a store of mam."""


class PostgresStore(SqlStore):
    """A registry for many hosts. Threads share one connection; a fork opens its own."""

    client: type[Client] = Client
    check_version = staticmethod(check_version)

    def __init__(self, url: str, clock: Clock | None = None, *, lease_seconds: float | None = None) -> None:
        super().__init__()
        self._server = Server(url, lease_seconds)
        self.address = self._server.address
        self._client = self.client(self._server)
        self._given = clock
        """The clock of a test; otherwise the server's clock decides."""
        self.clock = clock or ServerClock(self._client)
        self._entries: list[Json] = []
        """The journal entries that the open transaction writes at its end."""
        self._memory = JournalMemory()
        self._checked = self._client.connections
        """At which connection the journal was compared with the memory."""
        try:
            self.check_version(self._server, self._client.version())
        except MamError:
            self.close()
            raise

    # -- one statement ---------------------------------------------------------------------------------------------

    def claim(self, request: ClaimRequest) -> Job | None:
        if request.job_id is None:
            job, must_settle = self._skip_unreadable(lambda: self._claim_head(request))
            if job is not None or (request.agent_id is None and not must_settle):
                return job
        return super().claim(request)

    def _claim_head(self, request: ClaimRequest) -> tuple[Job | None, bool]:
        """The job, or whether the slow path has to look for one."""
        values = {**claim_values(request), "now_ms": self._now_ms()}
        rows = self._client.once(
            lambda: self._client.write("claim", values),
            lambda: self._rows("job by claim", claim_id=values["claim_id"]) or None,
        )
        ((must_settle, job_id, *others),) = rows
        if job_id is None:
            return None, must_settle
        try:
            return parse_row((job_id, *others), self.address).job, False
        except BadRecord as bad:
            self._in_transaction(self._unclaim, bad.facts["row"], values["claim_id"])
            raise

    def _unclaim(self, number: int, claim_id: str) -> None:
        self._rows("revert claim", number=number, claim_id=claim_id)

    def end_job(self, job_id: str, ended: End) -> Job:
        values = {"job_id": job_id, "act_id": new_claim_id(), "now_ms": self._now_ms(), **end_values(ended)}
        rows = self._client.once(
            lambda: self._client.write("end", values),
            lambda: self._rows("job", job_id=job_id) if self._is_noted(job_id, values["act_id"]) else None,
        )
        if rows:
            return parse_row(rows[0], self.address).job
        return self.change(job_id, lambda job, moment: end(job, moment, ended))

    def _is_noted(self, job_id: str, act_id: str) -> bool:
        numbers = self._rows("number", job_id=job_id)
        return bool(numbers) and bool(self._rows("entry of act", job=numbers[0][0], act_id=act_id))

    # -- read, decide, write -----------------------------------------------------------------------------------------

    def change(self, job_id: str, act: Act) -> Job:
        """Without a transaction for a job that involves no other: the write succeeds if the version is unchanged."""
        act_id = new_claim_id()
        written: list[Job] = []

        def found() -> tuple[Job] | None:
            return (written[-1],) if written and self._is_noted(job_id, act_id) else None

        def do() -> tuple[Job] | None:
            for _ in range(MISSES):
                row, moment = self._row_and_time(job_id)
                if row.awaited or row.job.exclusive is not None or row.job.after:
                    return None
                change = act(row.job, moment)
                if not change.lines:
                    return (change.job,)
                fields = changed_fields(row.job, change)
                if "prompt" in fields or fields.keys() & ORDER_FIELDS:
                    return None
                written.append(change.job)
                values = {**column_values(change.job, moment), "version": row.version}
                if self._client.write(
                    "update job and journal", {**values, **_entry(change.job, act_id, fields, change.lines)}
                ):
                    return (change.job,)
            return None

        done = self._client.once(do, found)
        return done[0] if done is not None else super().change(job_id, act)

    def _row_and_time(self, job_id: str) -> tuple[Row, Moment]:
        rows = self._rows("job and time", job_id=job_id, now_ms=self._now_ms())
        if not rows:
            raise UnknownJob(job=job_id, store=self.address)
        return parse_row(rows[0][1:], self.address), Moment(wall_ms=rows[0][0])

    def _change(self, job_id: str, act: Act) -> Job:
        self._rows("lock keys of jobs", job_ids=json.dumps([job_id]))
        return super()._change(job_id, act)

    # -- registering -------------------------------------------------------------------------------------------------

    def register(self, draft: Job) -> Registration:
        if draft.key or draft.retry_of or draft.continues or draft.after or draft.exclusive:
            return super().register(draft)
        act_id = new_claim_id()

        def found() -> Job | None:
            return self.get(draft.job_id) if self._is_noted(draft.job_id, act_id) else None

        def do() -> Job:
            ((number, now_ms),) = self._rows("next number and time", job_id=draft.job_id, now_ms=self._now_ms())
            if number is None:
                raise AlreadyRegistered(job=draft.job_id)
            moment = Moment(wall_ms=now_ms)
            change = acts.register(draft, number, moment)
            job = change.job
            values = {**column_values(job, moment), "root": None, "awaited": False, "prompt": job.prompt}
            entry = _entry(job, act_id, short_record(job), change.lines)
            self._client.write("insert job and journal", {**values, **entry})
            return job

        return Registration(job=self._client.once(do, found), created=True)

    def register_all(self, drafts: Sequence[Job]) -> list[Job]:
        return self._in_transaction(self._register_all, drafts)

    def _register_all(self, drafts: Sequence[Job]) -> list[Job]:
        """Registers all jobs in a few round trips."""
        ids = [draft.job_id for draft in drafts]
        taken = [job_id for (job_id,) in self._rows("taken ids", job_ids=json.dumps(ids))]
        taken = taken or [job_id for rank, job_id in enumerate(ids) if job_id in ids[:rank]]
        if taken:
            raise AlreadyRegistered(job=taken[0])
        numbers, moment = self._rows("reserve numbers", count=len(drafts)), self._now()
        changes = [acts.register(draft, number, moment) for draft, (number,) in zip(drafts, numbers, strict=True)]
        fresh = {"root": None, "awaited": False}
        rows = [{**column_values(one.job, moment), **fresh, "prompt": one.job.prompt} for one in changes]
        self._client.many("insert job", rows)
        for change in changes:
            self._append_entry(change.job, 1, short_record(change.job), change.lines)
        return [change.job for change in changes]

    def _register(self, draft: Job) -> Registration:
        """Takes the locks first: a transaction that waited for them sees what their holder wrote."""
        if draft.exclusive is not None:
            self._rows("lock", name=f"key {draft.exclusive}")
        chains = [*draft.after, *(job_id for job_id in (draft.retry_of, draft.continues) if job_id is not None)]
        for root in sorted({self._root(job_id) for job_id in chains}):
            self._rows("lock", name=f"chain {root}")
        return super()._register(draft)

    def _dependencies(self, draft: Job) -> Dependencies:
        """Marks the jobs before it reads them: a later end sees the mark, and this read sees an earlier end."""
        for job_id in draft.after:
            self._rows("mark awaited", job_id=job_id)
        return super()._dependencies(draft)

    # -- several jobs ------------------------------------------------------------------------------------------------

    def _announce(self, agent_id: str, generation_id: str) -> list[Job]:
        """Serialises announcements of a session, also while it has no row yet."""
        self._rows("lock", name=f"session {agent_id}")
        return super()._announce(agent_id, generation_id)

    def _check_generation(self, agent_id: str, generation_id: str) -> None:
        """The lock keeps a newer generation from being announced until the claim is committed."""
        self._rows("lock generation", agent_id=agent_id)
        super()._check_generation(agent_id, generation_id)

    def _due(self, moment: Moment) -> list[Any]:
        asked = {"wall_ms": moment.wall_ms, "limit": SWEEP_LIMIT}
        locked = [key for key, _ in self._rows("lock keys to sweep", **asked)]
        return self._rows("due", keys=json.dumps(locked), **asked)

    def _next_due(self) -> tuple[Moment, int | None, bool, bool]:
        ((now_ms, left_ms, is_unsettled, is_paused),) = self._rows("next due", now_ms=self._now_ms())
        return Moment(wall_ms=now_ms), left_ms, is_unsettled, is_paused

    def _lock_rows(self, job_ids: list[str]) -> list[Row]:
        self._rows("lock keys of jobs", job_ids=json.dumps(job_ids))
        return super()._lock_rows(job_ids)

    def _mark_readable(self, job: Job) -> None:
        self._rows("lock keys of jobs", job_ids=json.dumps([job.job_id]))
        super()._mark_readable(job)

    # -- transactions ------------------------------------------------------------------------------------------------

    def _in_transaction(self, do: Callable[..., T], *given: Any) -> T:
        if self._client.in_act:  # a nested act is a part of the outer one
            return do(*given)
        act_id = new_claim_id()

        def whole() -> T:
            self._entries, self._must_wake = [], False
            done = do(*given)
            if self._entries:
                first, *more = ({**entry, "act_id": act_id} for entry in self._entries)
                self._rows("insert entry", **first)
                if more:
                    self._each("insert next entry", more)
                if len(more) >= MANY:
                    self._rows("tell many", news=json.dumps([entry["news"] for entry in more]))
            elif self._must_wake:
                self._rows("tell", news="lifted  ")
            return done

        def is_done() -> bool:
            return bool(self._entries) and bool(self._rows("entry of act", job=self._entries[0]["job"], act_id=act_id))

        return self._client.act(whole, is_done)

    def _each(self, query: str, values: list[Json]) -> None:
        """As one statement, if there are many and the query has such a form: each statement costs both sides time."""
        if len(values) >= MANY and f"{query}, many" in QUERIES:
            self._rows(f"{query}, many", rows=json.dumps(values))
        else:
            self._client.many(query, values)

    def _rows(self, query: str, **values: Any) -> list[Any]:
        return self._client.rows(query, values)

    def _now(self) -> Moment:
        return Moment(wall_ms=self.clock.now().wall_ms)

    def _now_ms(self) -> int | None:
        return None if self._given is None else self._given.now().wall_ms

    # -- the journal -------------------------------------------------------------------------------------------------

    def _append_entry(self, job: Job, version: int, fields: Json | None, lines: tuple[AuditRecord, ...]) -> None:  # noqa: ARG002
        about_all = fields is not None and (job.exclusive is not None or job.status.ended)
        self._entries.append(_entry(job, None, fields, lines, label="" if about_all else job.agent_session))

    def end_offset(self) -> str:
        rows = self._rows("newest entry")
        while self._is_reconnected():
            self._check_journal()
            rows = self._rows("newest entry")
        for number, job_id, lines in rows:
            self._memory.note(number, job_id, lines)
            return self._memory.offset(number)
        return self._memory.offset(0)

    def entries(self, offset: str | None) -> Iterator[Entry]:
        return super().entries(str(self._memory.number(offset)))

    def _offset(self, number: int) -> str:
        return self._memory.offset(number)

    def _last_number(self) -> int:
        """The query decides how far a follower may read: asking first would be another round trip."""
        return sys.maxsize

    def _entry_rows(self, after: int, upto: int) -> list[Any]:
        offset = self._memory.offset(after)
        rows = super()._entry_rows(after, upto)
        while self._is_reconnected():
            self._check_journal()
            rows = super()._entry_rows(self._memory.number(offset), upto)
        for number, job_id, _fields, lines in rows:
            self._memory.note(number, job_id, lines)
        return rows

    def _is_reconnected(self) -> bool:
        """The server may then be a standby that lacked the last entries, or restored from a backup."""
        return self._checked != self._client.connections

    def _check_journal(self) -> None:
        self._checked = self._client.connections
        self._memory.forget_before(self.summarised_upto())
        lost_after = self._memory.lost_after(super()._entry_rows)
        if lost_after is not None:
            from mam.util.notices import warn

            lost = f"lost the entries of its journal after number {lost_after} (a standby took over that lacked them,"
            warn("mam.store", f"{self.address} {lost} or a backup was restored); it continues from there")

    def wait(self, offset: str, timeout: float, interest: Interest | None = None) -> bool:
        try:
            if interest is None and self._memory.number(self.end_offset()) > self._memory.number(offset):
                return True
            return self._client.listener.wait(timeout, interest)
        except psycopg.Error:
            return True  # the connection was lost; the caller finds out whether the server is back

    def probe(self) -> ServerReport:
        """For `mam doctor`."""
        hears = self._client.listener.hears()
        with self._client.connect() as connection:
            schemas = stores_elsewhere(connection)
        return ServerReport(is_pooled=self._server.is_pooled, hears=hears, elsewhere=tuple(schemas))

    def close(self) -> None:
        self._client.close()

    def __del__(self) -> None:
        if hasattr(self, "_client"):
            self.close()

    # -- what attempts leave behind ------------------------------------------------------------------------------------

    @property
    def outputs(self) -> Outputs:
        from mam.stores.postgres.outputs import PostgresOutputs

        return PostgresOutputs(self, self._rows, self._now_ms)

    # -- pauses and secrets, which may be repeated safely ---------------------------------------------------

    def resume(self, agent: str | None, label: str | None) -> bool:
        known = any((one.agent, one.label) == (agent, label) for one in self.pauses())
        super().resume(agent, label)
        return known

    def keep_secrets(self, job_id: str, secrets: dict[str, str]) -> None:
        rows = [{"job_id": job_id, "name": name, "secret": secret} for name, secret in secrets.items()]
        self._in_transaction(self._client.many, "keep secret", rows)

    def secrets(self, job_id: str) -> dict[str, str]:
        found = dict(self._rows("secrets", job_id=job_id))
        if None in found:
            why = f"{self._server.role} may not read the secrets of job {job_id}, which another role registered"
            raise StoreUnavailable(store=self.address, problem=f"{why}; docs/stores.md names these rights")
        return found

    # -- for the relays of all hosts (mam.bus.relay_locks_postgres) ----------------------------------------------------

    def connect(self) -> Connection:
        """A separate connection, for a lock that lasts as long as the connection."""
        return self._client.connect()

    def unavailable(self, error: psycopg.Error) -> MamError:
        return self._server.unavailable(error)

    def is_relay_lock_free(self, name: str, space: int) -> bool:
        return bool(self._rows("relay lock is free", name=name, space=space)[0][0])


def _entry(
    job: Job, act_id: str | None, fields: Json | None, lines: tuple[AuditRecord, ...], label: str | None = None
) -> Json:
    """A row of the journal, and what those who listen are to know (mam.stores.interest)."""
    status = "gone" if fields is None else job.status
    return {
        "news": f"{status} {job.job_id} {job.agent_session if label is None else label}",
        "job": job.number,
        "job_id": job.job_id,
        "act_id": act_id,
        "fields": None if fields is None else to_bytes(fields).decode(),
        "lines": to_bytes(lines).decode(),
    }
