"""The port, on PostgreSQL: each act is one transaction, and the server's clock is the only one that counts."""

from __future__ import annotations

import json
import os
from _thread import get_ident
from time import monotonic_ns

import psycopg
from psycopg import errors

from mam.clock import SystemClock
from mam.errors import AlreadyRegistered, MamError, UnknownJob
from mam.jobs.status import PENDING, RUNNING
from mam.stores.port import Entry
from mam.stores.postgres.acting import STATEMENTS, Acting
from mam.stores.postgres.connection import Server, text
from mam.stores.postgres.fresh import timeout_to_seal
from mam.stores.postgres.one_trip import OneTripStore
from mam.stores.postgres.rare import is_rare, is_watched
from mam.stores.postgres.schema import check_version, create_schema
from mam.stores.postgres.server_clock import ServerClock, moment_at
from mam.stores.sql.gate import Gate
from mam.stores.sql.look import Look
from mam.stores.sql.rows import job_of, told
from mam.stores.sql.store import PAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from mam.clock import Clock, Moment
    from mam.jobs.change import Change
    from mam.jobs.dependency import Needed
    from mam.jobs.pause import Pause
    from mam.jobs.record import Job, Json
    from mam.stores.port import Request
    from mam.stores.postgres.connection import Connection
    from mam.stores.sql.rows import Row
    from mam.stores.sql.sessions import Sessions

    T = TypeVar("T")


def create_postgres_store(url: str, *, filling: bool = False) -> bool:
    """Makes the schema if there is none, or brings an older one up to date; whether it did."""
    return create_schema(Server(url), SystemClock().new_id(), filling=filling)


class _Gate(Gate):
    """Whoever comes here holds the key, and the server sees for itself whether somebody runs under it."""

    def written(self, job: Job, root: str | None) -> None:
        if job.status.ended and root is not None:
            self._tell("lock root", root=root)  # a registration that comes after the root may be under way
        super().written(job, root)

    def rebalance(self, key: str) -> None:
        self._tell("block key", key=key)
        self._tell("free heads", key=key)


class PostgresStore(OneTripStore):
    """A registry for many hosts. Threads share one connection; a fork opens its own."""

    acting: type[Acting] = Acting
    check_version = staticmethod(check_version)

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self._server = server = Server(url)
        self.address = server.address
        self._channel = server.channel
        self.clock = clock or ServerClock(self)
        super().__init__(self.acting(server), by_server=clock is None)
        self._listeners: dict[tuple[int, int], Connection] = {}
        """One for each process and thread that waits: news that one has read would be lost to the other."""
        try:
            self.check_version(server, self._rows("version"))
        except MamError:
            self.close()
            raise

    # -- the journal -----------------------------------------------------------------------------------------------

    def end(self) -> str:
        """Behind everything that is sure to be seen; transactions still running come later, whatever their number."""
        return f"{self._value('end')}:0"

    def entries(self, cursor: str | None) -> Iterator[Entry]:
        end = str(self._value("end"))
        xact, _, number = (cursor or "0:0").partition(":")
        while rows := self._rows("entries", xact=xact, number=int(number), end=end, limit=PAGE):
            for xact, number, job_id, fields, lines in rows:
                yield Entry(
                    cursor=f"{xact}:{number}",
                    number=number,
                    job_id=job_id,
                    fields=None if fields is None else json.loads(fields),
                    lines=tuple(json.loads(lines)),
                )

    def wait(self, cursor: str, timeout: float) -> bool:
        me = (os.getpid(), get_ident())
        try:
            listener = self._listeners.get(me)
            if listener is None or listener.closed:
                listener = self._listeners[me] = self._acting.reconnected()
                listener.execute(text(STATEMENTS["listen"].text))
                listener.execute(text(f"LISTEN {self._channel}"))
                return True  # something may have happened before the ear was there: look once more
            if self.end() != cursor and next(iter(self.entries(cursor)), None) is not None:
                return True
            return any(True for _ in listener.notifies(timeout=timeout, stop_after=1))
        except psycopg.Error:
            lost = self._listeners.pop(me, None)
            if lost is not None:
                lost.close()
            return True  # the server went away; whoever waits finds out whether it is back

    def close(self) -> None:
        """What a parent opened before it forked stays open for the parent."""
        self._acting.close()
        for process, thread in list(self._listeners):
            if process == os.getpid():
                self._listeners.pop((process, thread)).close()

    def __del__(self) -> None:
        if hasattr(self, "_listeners"):
            self.close()

    # -- pauses and secrets: each is one statement, which does no harm when it is done twice -------------------------

    def pause(self, pause: Pause) -> None:
        self._rows("pause", **{**pause.as_dict(), "agent": pause.agent or "", "label": pause.label or ""})

    def resume(self, agent: str | None, label: str | None) -> bool:
        known = any((one.agent, one.label) == (agent, label) for one in self.pauses())
        self._rows("resume", agent=agent or "", label=label or "")
        return known

    def keep_secrets(self, job_id: str, secrets: dict[str, str]) -> None:
        for name, secret in secrets.items():
            self._rows("keep secret", job_id=job_id, name=name, secret=secret)

    def secrets(self, job_id: str) -> dict[str, str]:
        return dict(self._rows("secrets", job_id=job_id))

    # -- for the relays of all hosts (mam.bus.place_postgres) ---------------------------------------------------------

    def connect(self) -> Connection:
        """One of its own, for a lock that lasts as long as it."""
        return self._acting.reconnected()

    def unavailable(self, error: psycopg.Error) -> MamError:
        return self._server.unavailable(error)

    def relay_sent(self, broker: str) -> str | None:
        found = self._rows("relay", broker=broker)
        return found[0][0] if found else None

    def keep_relay_sent(self, broker: str, sent: str) -> None:
        self._rows("keep relay", broker=broker, sent=sent)

    def is_relay_lock_free(self, name: str, space: int) -> bool:
        return bool(self._value("relay lock is free", name=name, space=space))

    # -- how it is done here ---------------------------------------------------------------------------------------

    @property
    def _gate(self) -> Gate:
        return _Gate(self._rows, self._run)

    @property
    def _sessions(self) -> Sessions:
        from mam.stores.postgres.sessions import HeldSessions

        return HeldSessions(self._rows, self._run)

    def _claim_first(self, request: Request) -> Job | None:
        """Most claims find a job and nothing that stands before it; then nothing else is asked."""
        if self._by_server and request.job_id is None:
            job = self._act(self._claim_ready, request)
            if job is not None:
                return job
        return super()._claim_first(request)

    def _claim_ready(self, request: Request) -> Job | None:
        rows = self._rows("ready", label=request.label)
        if not rows or rows[0][4]:
            return None
        row = self._row(*rows[0][:3])
        self._fresh.expect(row.job.timeout_sec)
        return self._claim(request, Look(self._moment_of(rows[0][3]), [], False, row))

    def _look(self, request: Request | None, limit: int) -> Look:
        if not self._by_server:
            return self._look_by(self.clock.now(), request, limit)
        label = request.label if request is not None and request.job_id is None else None
        (_now, now, unsettled, paused, _root), *found = self._rows("look", label=label, limit=limit)
        moment = self._moment_of(now)
        due = [self._row(*row[2:]) for row in found if row[0] == "due"]
        if due or unsettled == "true" or request is None:
            return Look(moment, due, unsettled == "true", None)
        if paused == "true" or label is None:
            return Look(moment, due, False, self._first(request, self.pauses(), moment))
        return Look(moment, due, False, self._row(*found[0][2:]) if found else None)

    def _to_change(self, job_id: str) -> tuple[Row, Moment]:
        rows = self._rows("job to change", job_id=job_id)
        if not rows:
            raise UnknownJob(job=job_id, store=self.address)
        return self._row(*rows[0][:3]), self._moment_of(rows[0][3])

    def _place_for(self, draft: Job) -> tuple[int, Moment, Job | None, str | None]:
        if draft.exclusive is not None:
            self._run("lock key", key=draft.exclusive)
        asked = {"key": draft.key, "retry_of": draft.retry_of, "job_id": draft.job_id}
        ((record, prompt, taken, number, root, now),) = self._rows("place", **asked)
        if record is not None:
            return 0, self._moment_of(now), job_of(record, prompt, self.address), None
        if taken:
            raise AlreadyRegistered(job=draft.job_id)
        return number, self._moment_of(now), None, root

    def _needed(self, draft: Job) -> Needed:
        needed = json.dumps(draft.after)
        self._run("mark roots", job_ids=needed)
        self._rows("lock roots", job_ids=needed)
        return super()._needed(draft)

    def _those_to_change(self, job_ids: list[str]) -> list[Any]:
        rows = super()._those_to_change(job_ids)
        if any(newer for *_row, newer in rows):
            raise errors.SerializationFailure("somebody has written one of them since this transaction began")
        return [row for *row, _newer in rows]

    def _insert(self, values: dict[str, Any], fields: Json, change: Change) -> None:
        entry, events = told(fields, change)
        news = _is_news(None, change.job)
        self._run("insert job", **values, **entry, timeout_to_seal=timeout_to_seal(values), news=news)
        if is_rare(values):
            self._run("insert rare", **values)
        self._tell(values["job_id"], events)

    def _update(self, before: Row, values: dict[str, Any], fields: Json, change: Change) -> None:
        entry, events = told(fields, change)
        news = _is_news(before.job, change.job)
        if events:
            self._run("update job and tell", **values, **entry, **events[0], news=news)
            self._tell(values["job_id"], events[1:])
        else:
            self._run("update job", **values, **entry, news=news)
        if before.job.claimant is not None or is_watched(change.job):
            self._run("keep rare", **values)
            if not is_watched(change.job):
                self._run("no longer rare", **values)

    def _move_to_archive(self, job_ids: list[str], lines: dict[str, str]) -> None:
        self._rows("archive jobs", job_ids=json.dumps(job_ids), lines=json.dumps(lines))

    def _forget(self, job_id: str) -> None:
        self._rows("forget events", job_id=job_id)
        self._rows("forget job", job_id=job_id)

    def _tell(self, job_id: str, events: list[dict[str, Any]]) -> None:
        for event in events:
            self._run("insert event", job_id=job_id, **event)

    def _moment(self) -> Moment:
        return self.clock.now()

    def _moment_of(self, now: int) -> Moment:
        self._ahead_ms = now - monotonic_ns() // 1_000_000
        return moment_at(now) if self._by_server else self.clock.now()

    def _act(self, do: Callable[..., T], *given: Any) -> T:
        return self._acting.act(do, *given)

    def _rows(self, query: str, **values: Any) -> list[Any]:
        return self._acting.rows(query, values)

    def _run(self, query: str, **values: Any) -> list[Any]:
        self._acting.run(query, values)
        return []


def _is_news(before: Job | None, job: Job) -> bool:
    """Somebody may wait for just this: a job may be claimed or has ended; or a key is free again."""
    if before is not None and job.status is before.status:
        return False
    freed = before is not None and before.status is RUNNING and job.exclusive is not None
    return job.status.ended or job.status is PENDING or freed
