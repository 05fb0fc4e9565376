"""The port in terms of named queries. A database says how it connects, begins and waits; everything else is here."""

from __future__ import annotations

import json
from abc import abstractmethod

from mam.errors import AlreadyRegistered, UnknownJob
from mam.jobs import acts
from mam.jobs.status import PENDING
from mam.jobs.sweep import SWEEP_LIMIT, settle
from mam.stores.common import check_exclusive, claimed, soonest
from mam.stores.port import Registration
from mam.stores.sql.archive import SqlArchive
from mam.stores.sql.damage import SqlDamage, check_moved, check_same
from mam.stores.sql.gate import Gate, stands_alone
from mam.stores.sql.look import Look
from mam.stores.sql.rows import Row, changing_values, job_of, job_values, new_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    from mam.clock import Clock, Moment
    from mam.jobs.change import Change, Line
    from mam.jobs.dependency import Needed
    from mam.jobs.pause import Pause
    from mam.jobs.record import Job, Json
    from mam.stores.port import Act, Entry, Query, Request
    from mam.stores.sql.sessions import Sessions

    T = TypeVar("T")

PAGE = 500
"""Rows asked for at once: a long list never holds the database's old pages back."""

UNBELIEVABLE = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""What comes of a record that is not what a record is."""

KNOWN_ROWS, KNOWN_SIZE = 32, 1 << 16
"""How many rows a store remembers, and of how many characters each."""


class SqlStore(SqlArchive, SqlDamage):
    """Half of a store; `_act`, `_rows`, `_moment` and the journal's own order are the other half."""

    address: str
    clock: Clock
    home: str | None = None
    coming: Callable[[Entry], None] | None = None

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Row] = {}
        """What this store wrote last of jobs that go on: whoever claims one is likely to end it. Only a row that the
        database finds unchanged, in the same transaction, is taken for what is there."""

    # -- what a database adds ----------------------------------------------------------------------------------------

    @abstractmethod
    def _act(self, do: Callable[..., T], *given: Any) -> T:
        """Does it in one transaction that is durable when this returns; what it raises undoes everything."""

    @abstractmethod
    def _rows(self, query: str, **values: Any) -> list[Any]:
        """What a named query answers."""

    @abstractmethod
    def _look(self, request: Request | None, limit: int) -> Look:
        """All that a claim has to know before it may decide; without a request, all that a sweep has to."""

    @abstractmethod
    def _to_change(self, job_id: str) -> tuple[Row, Moment]:
        """The row of one job, held until the transaction ends, and the time by which it is judged."""

    @abstractmethod
    def _insert(self, values: dict[str, Any], fields: Json, change: Change) -> None:
        """A new row, with its line in the journal and what it tells."""

    @abstractmethod
    def _update(self, before: Row, values: dict[str, Any], fields: Json, change: Change) -> None:
        """The same for a row that is there."""

    @abstractmethod
    def _moment(self) -> Moment:
        """The time by which this database judges leases."""

    @property
    def _gate(self) -> Gate:
        """Made when it is needed: one that was kept would keep the store that it asks."""
        return Gate(self._rows)

    @property
    def _sessions(self) -> Sessions:
        from mam.stores.sql.sessions import Sessions

        return Sessions(self._rows)

    @property
    def journal_id(self) -> str:
        return str(self._value("journal id"))

    # -- changing --------------------------------------------------------------------------------------------------

    def register(self, draft: Job) -> Registration:
        return self._act(self._registered, draft)

    def register_all(self, drafts: Sequence[Job]) -> list[Job]:
        return self._act(lambda: [self._registered(draft).job for draft in drafts])

    def _registered(self, draft: Job) -> Registration:
        number, moment, known, root = self._place_for(draft)
        if known is not None:
            return Registration(job=known, created=False)
        needed = self._needed(draft) if draft.after else {}
        change = acts.register(draft, number, moment, needed)
        self._write_new(change, root)
        return Registration(job=change.job, created=True)

    def change(self, job_id: str, act: Act) -> Job:
        return self._act(self._change, job_id, act)

    def _change(self, job_id: str, act: Act) -> Job:
        row, moment = self._to_change(job_id)

        def do() -> Job:
            change = act(row.job, moment)
            check_exclusive(row.job, change.job, self.holder)
            return self._write(row, change)

        return self._believing(row, do)

    def claim(self, request: Request) -> Job | None:
        """What is due is settled in a transaction of its own: entries of one job must not be written by a transaction
        that is older than the one that registered it, or followers would meet them in the wrong order."""
        if request.agent_id is not None and request.generation_id is not None:
            self.announce(request.agent_id, request.generation_id)
        return self._past_damage(self._claim_first, request)

    def _claim_first(self, request: Request) -> Job | None:
        job, settled = self._act(self._settle_or_claim, request)
        return self._act(lambda: self._claim(request, self._look(request, 0))) if settled else job

    def _settle_or_claim(self, request: Request) -> tuple[Job | None, bool]:
        look = self._look(request, SWEEP_LIMIT)
        if look.due or look.unsettled:
            self._settle(look)
            return None, True
        return self._claim(request, look), False

    def _claim(self, request: Request, look: Look) -> Job | None:
        row = look.first
        if row is None:
            return None
        check_same(row, PENDING, request.label, self.address)
        if request.agent_id is not None and request.generation_id is not None:
            self._sessions.check(request.agent_id, request.generation_id)
        return self._believing(row, lambda: self._write(row, claimed(row.job, request, look.moment)))

    def announce(self, agent_id: str, generation_id: str) -> list[Job]:
        """In a transaction of its own, for the same reason; and said until it is known, since a database may forget
        what it did not answer. The claim then looks again that nobody was quicker."""
        moved: list[Job] = []
        while (some := self._act(self._announce, agent_id, generation_id)) is not None:
            moved += some
        return moved

    def _announce(self, agent_id: str, generation_id: str) -> list[Job] | None:
        """The jobs that it takes from its predecessor; None when it is known already."""
        from mam.jobs.generation import displaced

        sessions = self._sessions
        if not sessions.announce(agent_id, generation_id):
            return None
        held = sessions.held_by(agent_id)
        if not held:
            return []
        moment = self._moment()
        rows = self._readable(self._those_to_change(held))
        moved = [self._settled(row, lambda job: displaced(job, agent_id, generation_id, moment)) for row in rows]
        return [job for job in moved if job is not None]

    def sweep(self) -> list[Job]:
        return self._past_damage(lambda: self._act(lambda: self._settle(self._look(None, SWEEP_LIMIT))))

    # -- reading ---------------------------------------------------------------------------------------------------

    def get(self, job_id: str) -> Job:
        job = self._job("job", job_id=job_id)
        if job is None:
            raise UnknownJob(job=job_id, store=self.address)
        return job

    def ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
        rows = self._rows("ids with prefix", prefix=prefix, behind=prefix + "\U0010ffff", limit=limit)
        return [row[0] for row in rows]

    def children(self, job_id: str) -> list[str]:
        return [row[0] for row in self._rows("children", parent=job_id)]

    def select(self, query: Query) -> Iterator[Job]:
        from mam.stores.sql.selection import Selection

        self._spoilt = {}
        return self._listed(Selection(self._rows, query).rows())

    def ahead_of(self, job: Job) -> int:
        return int(self._value("ahead", label=job.agent_session, priority=job.priority, number=job.number))

    def newest(self, job_id: str) -> Job | None:
        found = self._job("job", job_id=self._gate.newest(job_id))
        return found if found is not None else self._newest_archived(job_id)

    def holder(self, key: str) -> str | None:
        return self._gate.holder(key)

    def events(self, job_id: str) -> list[Line]:
        return [json.loads(row[0]) for row in self._rows("events", job_id=job_id)]

    def due_in(self) -> float | None:
        from mam.jobs.pause import seconds_until_lifted

        moment = self._moment()
        (due,) = self._rows("next due", boot_id=moment.boot_id, boot_ms=moment.boot_ms, wall_ms=moment.wall_ms)
        known = [int(time) for time in due if time is not None]
        return soonest(max(0, min(known)) / 1000 if known else None, seconds_until_lifted(self.pauses(), moment))

    # -- looking ---------------------------------------------------------------------------------------------------

    def _look_by(self, moment: Moment, request: Request | None, limit: int) -> Look:
        """The look of a database that has no clock of its own."""
        clocks = {"boot_id": moment.boot_id, "boot_ms": moment.boot_ms, "wall_ms": moment.wall_ms}
        found: list[Any] = self._rows("due", limit=limit, **clocks) if limit else [(None, "paused")]
        hindrances = {row[1] for row in found if row[0] is None}
        if len(found) > len(hindrances) or "unsettled" in hindrances or request is None:
            due = sorted((row for row in found if row[0] is not None), key=lambda row: -int(row[0]))
            return Look(moment, [self._row(*row[1:]) for row in due[:limit]], "unsettled" in hindrances, None)
        pauses = self.pauses() if "paused" in hindrances else []
        return Look(moment, [], False, self._first(request, pauses, moment))

    def _first(self, request: Request, pauses: list[Pause], moment: Moment) -> Row | None:
        """The one that a request gets, unless a pause holds all of them."""
        skipped: frozenset[str] | None = frozenset()
        wanted = [] if request.job_id is None else [request.job_id]
        if pauses:
            from mam.jobs.pause import passed_over, tried_first

            skipped = passed_over(pauses, request.label, moment)
            wanted = wanted or tried_first(pauses, request.label, moment)
        for job_id in wanted:
            held = passed_over(pauses, request.label, moment, job_id) if pauses else skipped
            if (row := self._this(request.label, job_id, held)) is not None:
                return row
        if request.job_id is not None or skipped is None:
            return None
        rows = self._first_pending(request.label, sorted(skipped))
        return self._row(*rows[0]) if rows else None

    def _first_pending(self, label: str, skipped: list[str]) -> list[Any]:
        if skipped:
            return self._rows("first of others", label=label, skipped=json.dumps(skipped))
        return self._rows("first pending", label=label)

    def _this(self, label: str, job_id: str, skipped: frozenset[str] | None) -> Row | None:
        """Exactly this one, if it may be claimed and its agent is not passed over."""
        if skipped is None:
            return None
        rows = self._rows("this pending", label=label, job_id=job_id, skipped=json.dumps(sorted(skipped)))
        return self._row(*rows[0]) if rows else None

    # -- pauses ----------------------------------------------------------------------------------------------------

    def pauses(self) -> list[Pause]:
        return pauses_in(self._rows("pauses"))

    def pause(self, pause: Pause) -> None:
        values = {**pause.as_dict(), "agent": pause.agent or "", "label": pause.label or ""}
        self._act(lambda: self._rows("pause", **values))

    def resume(self, agent: str | None, label: str | None) -> bool:
        return bool(self._act(lambda: self._rows("resume", agent=agent or "", label=label or "")))

    # -- shared ----------------------------------------------------------------------------------------------------

    def _settle(self, look: Look) -> list[Job]:
        """What time has decided, for a bounded number of jobs, longest due first."""
        settled = []
        for row in look.due:
            moved = self._settled(row, lambda job: settle(job, look.moment))
            check_moved(row, moved, self.address)
            settled.append(moved)
        if look.unsettled:
            settled += self._settle_dependents(look.moment)
        return [job for job in settled if job is not None]

    def _settle_dependents(self, moment: Moment) -> list[Job | None]:
        """What the end of a job means for some of those that come after it."""
        from mam.jobs.dependency import settle_dependency

        page = self._gate.page(SWEEP_LIMIT)
        if page is None:
            return []
        rows = self._readable(self._those_to_change(page.dependents))
        newest = {job_id: self.newest(job_id) for row in rows for job_id in row.job.after}
        settled = [self._settled(row, lambda job: settle_dependency(job, newest, moment)) for row in rows]
        self._gate.turn(page)
        return settled

    def _those_to_change(self, job_ids: list[str]) -> list[Any]:
        return self._rows("jobs to change", job_ids=json.dumps(job_ids))

    def _settled(self, row: Row, decide: Callable[[Job], Change]) -> Job | None:
        def do() -> Job | None:
            change = decide(row.job)
            return self._write(row, change) if change.lines else None

        return self._believing(row, do)

    def _write(self, before: Row, change: Change) -> Job:
        """Record, history and events of one change, in the transaction that is open; the job after it."""
        if change.lines:
            row, changed = before.after(change)
            self._update(before, changing_values(row), changed, change)
            self._written(row)
        return change.job

    def _write_new(self, change: Change, root: str | None) -> None:
        row = new_row(change.job, root)
        self._insert(job_values(row), change.job.to_json(), change)
        self._gate.written(row.job, row.root)

    def _written(self, row: Row) -> None:
        if row.job.status.ended or not stands_alone(row.job):
            self._gate.written(row.job, row.root)
        self._remember(row)

    def _remember(self, row: Row) -> None:
        """A few small ones: a worker has so many jobs in its hands at once, and nobody ends a job twice."""
        known, job = self._known, row.job
        known.pop(job.job_id, None)
        if not job.status.ended and len(row.prompt) + len(row.record) <= KNOWN_SIZE:
            known[job.job_id] = row
            if len(known) > KNOWN_ROWS:
                known.pop(list(known)[0], None)  # noqa: RUF015 - in one step, since threads may share it

    def _needed(self, draft: Job) -> Needed:
        """Those that a new job comes after, as they are until this transaction ends."""
        from mam.stores.common import checked_needed

        needed = {job_id: self.newest(job_id) for job_id in draft.after}
        return checked_needed(draft, needed, self.address, self.newest)

    def _place_for(self, draft: Job) -> tuple[int, Moment, Job | None, str | None]:
        """The number that a new job gets and when; the one that was registered in its place before; its root."""
        known = self._job("job with key", key=draft.key) if draft.key is not None else None
        if known is None and draft.retry_of is not None:
            known = self._job("job that retries", retry_of=draft.retry_of)
        if known is not None:
            return 0, self._moment(), known, None
        if self._rows("taken", job_id=draft.job_id):
            raise AlreadyRegistered(job=draft.job_id)
        root = None if draft.retry_of is None else self._value("root", job_id=draft.retry_of)
        return int(self._value("next number")), self._moment(), None, root

    def _row(self, record: str, prompt: str, root: str | None) -> Row:
        return Row(record, prompt, root, self.address)

    def _believing(self, row: Row, do: Callable[[], T]) -> T:
        """Rows are believed until something about them cannot be; then each field is looked at, to say which."""
        try:
            return do()
        except UNBELIEVABLE:
            row.check(self.address)
            raise

    def _job(self, query: str, **values: Any) -> Job | None:
        rows = self._rows(query, **values)
        return job_of(rows[0][0], rows[0][1], self.address) if rows else None

    def _value(self, query: str, **values: Any) -> Any:
        return self._rows(query, **values)[0][0]


def pauses_in(rows: list[Any]) -> list[Pause]:
    if not rows:
        return []
    from mam.jobs.pause import Pause

    return [
        Pause(agent=agent or None, label=label or None, until=until, reason=reason, made_at=made_at, probe=probe)
        for agent, label, until, reason, made_at, probe in rows
    ]
