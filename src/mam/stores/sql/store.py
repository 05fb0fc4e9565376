"""The port in named queries.

Every act reads the row, lets a pure function decide, and writes the row and its journal entry in the same transaction.
"""

from __future__ import annotations

import json

from mam.errors import AlreadyRegistered, BadRecord, GenerationLost, UnknownJob
from mam.jobs import acts
from mam.jobs.ending import end
from mam.jobs.generation import Generations
from mam.jobs.pause import Pause
from mam.jobs.sweep import SWEEP_LIMIT, settle
from mam.stores.common import apply_claim, check_dependencies, check_exclusive, soonest
from mam.stores.port import Problem, QueuedJob, Registration
from mam.stores.sql.archive import SqlArchive
from mam.stores.sql.rows import COLUMNS, Row, parse_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from mam.jobs.change import Change
    from mam.jobs.credential import Credential
    from mam.jobs.dependency import Dependencies
    from mam.jobs.ending import End
    from mam.jobs.record import Job, Json
    from mam.jobs.workers import WorkerEntry
    from mam.stores.port import Act, ClaimRequest, Query
    from mam.util.clock import Clock, Moment

    T = TypeVar("T")

_NUMBER = COLUMNS.index("number")


class SqlStore(SqlArchive):
    """A store without its database, which a subclass adds (the abstract methods of SqlBase, and `wait`)."""

    clock: Clock
    home: str | None = None

    def __init__(self) -> None:
        self._unreadable: dict[str, str] = {}
        """The jobs that the last list skipped, by id, and the problem of each."""
        self._must_wake = False
        """Whether the commit of the open transaction has to wake the processes that wait."""

    @property
    def journal_id(self) -> str:
        return str(self._rows("epoch")[0][0])

    # -- registering -------------------------------------------------------------------------------------------------

    def register(self, draft: Job) -> Registration:
        return self._in_transaction(self._register, draft)

    def register_all(self, drafts: Sequence[Job]) -> list[Job]:
        return self._in_transaction(lambda: [self._register(draft).job for draft in drafts])

    def _register(self, draft: Job) -> Registration:
        known = self._registered_before(draft)
        if known is not None:
            return Registration(job=known, created=False)
        if self._rows("is taken", job_id=draft.job_id):
            raise AlreadyRegistered(job=draft.job_id)
        needed = self._dependencies(draft) if draft.after else {}
        moment = self._now()
        change = acts.register(draft, int(self._rows("next number")[0][0]), moment, needed)
        self._insert(change, moment)
        return Registration(job=change.job, created=True)

    def _registered_before(self, draft: Job) -> Job | None:
        """The job with the same key, or the earlier retry or continuation of the same job, also in the archive."""
        for name, value in (("key", draft.key), ("retry_of", draft.retry_of), ("continues", draft.continues)):
            if value is None:
                continue
            found = self._job(f"job by {name}", value=value)
            archived = [] if found is not None else self._rows(f"archived by {name}", value=value)
            if found is not None or archived:
                return found or self._parse_archived(archived[0][0])
        return None

    def _dependencies(self, draft: Job) -> Dependencies:
        """The jobs that a new one depends on; they stay as they are until this transaction ends."""
        needed = {job_id: self.newest(job_id) for job_id in draft.after}
        return check_dependencies(draft, needed, self.address, self.newest)

    # -- changing ----------------------------------------------------------------------------------------------------

    def change(self, job_id: str, act: Act) -> Job:
        return self._in_transaction(self._change, job_id, act)

    def end_job(self, job_id: str, ended: End) -> Job:
        return self.change(job_id, lambda job, moment: end(job, moment, ended))

    def _change(self, job_id: str, act: Act) -> Job:
        rows = self._rows("job to change", job_id=job_id)
        if not rows:
            raise UnknownJob(job=job_id, store=self.address)
        row, moment = parse_row(rows[0], self.address), self._now()
        change = act(row.job, moment)
        check_exclusive(row.job, change.job, self.holder)
        return self._write(row, change, moment)

    def claim(self, request: ClaimRequest) -> Job | None:
        if request.agent_id is not None and request.generation_id is not None:
            self.announce(request.agent_id, request.generation_id)
        return self._skip_unreadable(lambda: self._in_transaction(self._claim, request))

    def _claim(self, request: ClaimRequest) -> Job | None:
        moment = self._now()
        is_due, is_unsettled, is_paused = self._claim_conditions(moment)
        if is_due or is_unsettled:
            self._settle_due(moment)
        row = self._find_job(request, self.pauses() if is_paused else [], moment)
        if row is None:
            return None
        if request.agent_id is not None and request.generation_id is not None:
            self._check_generation(request.agent_id, request.generation_id)
        return self._write(row, apply_claim(row.job, request, moment), moment)

    def _claim_conditions(self, moment: Moment) -> tuple[bool, bool, bool]:
        """Whether a job is due, whether jobs depend on an end that was not settled yet, and whether there is a
        pause."""
        ((is_due, is_unsettled, is_paused),) = self._rows("claim conditions", **_clocks(moment))
        return bool(is_due), bool(is_unsettled), bool(is_paused)

    def _find_job(self, request: ClaimRequest, pauses: list[Pause], moment: Moment) -> Row | None:
        """The job that a request gets; jobs of a paused agent are skipped."""
        from mam.jobs.pause import paused_agents, probe_jobs

        wanted = [] if request.job_id is None else [request.job_id]
        wanted = wanted or probe_jobs(pauses, request.label, moment)
        for job_id in wanted:
            row = self._find_pending(request, job_id, paused_agents(pauses, request.label, moment, job_id))
            if row is not None:
                return row
        if request.job_id is not None:
            return None
        return self._find_pending(request, None, paused_agents(pauses, request.label, moment))

    def _find_pending(self, request: ClaimRequest, job_id: str | None, skipped: frozenset[str] | None) -> Row | None:
        if skipped is None:
            return None
        query = "first pending" if job_id is None else "this pending"
        wanted = {"label": request.label, "host": request.host, "job_id": job_id}
        rows = self._rows(query, **wanted, skipped=json.dumps(sorted(skipped)))
        return parse_row(rows[0], self.address) if rows else None

    # -- sessions ----------------------------------------------------------------------------------------------------

    def announce(self, agent_id: str, generation_id: str) -> list[Job]:
        return self._in_transaction(self._announce, agent_id, generation_id)

    def _announce(self, agent_id: str, generation_id: str) -> list[Job]:
        """Returns the jobs that an older generation of the session held, which can be claimed again."""
        from mam.jobs.generation import release_displaced, supersede

        known = self._generation(agent_id)
        new = supersede(known, agent_id, generation_id)
        if new is known:
            return []
        self._save_generation(agent_id, new.current, json.dumps(new.superseded))
        moment = self._now()
        held = [str(row[0]) for row in self._rows("jobs held by session", agent_id=agent_id)]
        rows = self._lock_rows(held)
        return self._write_all(
            ((row, release_displaced(row.job, agent_id, generation_id, moment)) for row in rows), moment
        )

    def _save_generation(self, agent_id: str, current: str, superseded: str) -> None:
        self._rows("save generation", agent_id=agent_id, generation_id=current, superseded=superseded)

    def _check_generation(self, agent_id: str, generation_id: str) -> None:
        """Raises GenerationLost when a newer generation replaced this one after it was announced."""
        known = self._generation(agent_id)
        if known is None or known.current != generation_id:
            owner = "nobody" if known is None else known.current
            raise GenerationLost(agent=agent_id, owner=owner, generation=generation_id)

    def _generation(self, agent_id: str) -> Generations | None:
        rows = self._rows("generation", agent_id=agent_id)
        return Generations(current=rows[0][0], superseded=tuple(json.loads(rows[0][1]))) if rows else None

    def generations(self) -> dict[str, Generations]:
        return {
            agent_id: Generations(current=current, superseded=tuple(json.loads(superseded)))
            for agent_id, current, superseded in self._rows("generations")
        }

    # -- sweeping ----------------------------------------------------------------------------------------------------

    def sweep(self) -> list[Job]:
        return self._skip_unreadable(lambda: self._in_transaction(lambda: self._settle_due(self._now())))

    def _settle_due(self, moment: Moment) -> list[Job]:
        """Settles a bounded number of due jobs, longest due first, and then jobs that depend on an ended one."""
        rows = [parse_row(found, self.address) for found in self._due(moment)]
        settled = self._write_all(((row, settle(row.job, moment)) for row in rows), moment)
        return settled + self._settle_dependents(moment)

    def _due(self, moment: Moment) -> list[Any]:
        return self._rows("due", limit=SWEEP_LIMIT, **_clocks(moment))

    def _settle_dependents(self, moment: Moment) -> list[Job]:
        from mam.jobs.dependency import settle_dependency

        page = self._blocking.next_page(SWEEP_LIMIT)
        if page is None:
            return []
        rows = self._lock_rows(page.dependents)
        newest = {job_id: self.newest(job_id) for row in rows for job_id in row.job.after}
        settled = self._write_all(((row, settle_dependency(row.job, newest, moment)) for row in rows), moment)
        self._blocking.finish_page(page)
        return settled

    def _write_all(self, changes: Iterable[tuple[Row, Change]], moment: Moment) -> list[Job]:
        """Writes the changes that have lines, and returns those jobs."""
        return [self._write(row, change, moment) for row, change in changes if change.lines]

    def _lock_rows(self, job_ids: list[str]) -> list[Row]:
        if not job_ids:
            return []
        return [parse_row(found, self.address) for found in self._rows("jobs to change", job_ids=json.dumps(job_ids))]

    # -- reading -----------------------------------------------------------------------------------------------------

    def ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
        rows = self._rows("ids with prefix", prefix=prefix, behind=prefix + "\U0010ffff", limit=limit)
        return [row[0] for row in rows]

    def children(self, job_id: str) -> list[str]:
        return [row[0] for row in self._rows("children", parent=job_id)]

    def select(self, query: Query) -> Iterator[Job]:
        from mam.stores.sql.selection import select_rows

        self._unreadable = {}
        for found in select_rows(self._rows, query, _NUMBER):
            try:
                yield parse_row(found, self.address).job
            except BadRecord as bad:
                self._unreadable[found[0]] = str(bad.facts["problem"])

    def queue(self, label: str | None = None, since: str | None = None) -> list[QueuedJob]:
        rows = self._rows("queue", label=label, since=since)
        return [
            QueuedJob(job_id=job_id, label=label, agent=agent, priority=priority, number=number)
            for job_id, label, agent, priority, number in rows
        ]

    def counts(self) -> dict[str, int]:
        return dict(self._rows("counts"))

    def ended_before(self, before: str) -> dict[str, int]:
        return dict(self._rows("ended before", before=before))

    def ahead_of(self, job: Job) -> int:
        return int(self._rows("count ahead", label=job.agent_session, priority=job.priority, number=job.number)[0][0])

    def holder(self, key: str) -> str | None:
        return self._blocking.holder(key)

    def due_in(self) -> float | None:
        from mam.jobs.pause import seconds_until_lifted

        moment, left_ms, is_unsettled, is_paused = self._next_due()
        if is_unsettled:
            return 0.0
        lifted = seconds_until_lifted(self.pauses(), moment) if is_paused else None
        return soonest(None if left_ms is None else max(0, left_ms) / 1000, lifted)

    def _next_due(self) -> tuple[Moment, int | None, bool, bool]:
        """The time; milliseconds until a lease or a wait ends; whether jobs depend on an end that was not settled yet;
        whether there is a pause."""
        moment = self._now()
        ((by_boot, by_wall, is_unsettled, is_paused),) = self._rows("next due", **_clocks(moment))
        known = [int(left) for left in (by_boot, by_wall) if left is not None]
        return moment, min(known, default=None), bool(is_unsettled), bool(is_paused)

    # -- pauses ------------------------------------------------------------------------------------------------------

    def pauses(self) -> list[Pause]:
        return [
            Pause(agent=agent or None, label=label or None, until=until, reason=reason, made_at=made_at, probe=probe)
            for agent, label, until, reason, made_at, probe in self._rows("pauses")
        ]

    def pause(self, pause: Pause) -> None:
        values = {**pause.as_dict(), "agent": pause.agent or "", "label": pause.label or ""}
        self._in_transaction(self._set_pause, "pause", values)

    def resume(self, agent: str | None, label: str | None) -> bool:
        return bool(self._in_transaction(self._set_pause, "resume", {"agent": agent or "", "label": label or ""}))

    def _set_pause(self, query: str, values: Json) -> list[Any]:
        self._must_wake = True
        return self._rows(query, **values)

    # -- workers -----------------------------------------------------------------------------------------------------

    def note_worker(self, entry: WorkerEntry) -> str | None:
        values = {"name": entry.name, "entry": json.dumps(entry.to_json())}
        ((asked,),) = self._in_transaction(lambda: self._rows("note worker", **values))
        return None if asked is None else str(asked)

    def workers(self) -> list[WorkerEntry]:
        from mam.jobs.workers import parse_worker

        return [parse_worker(json.loads(entry), asked) for entry, asked in self._rows("workers")]

    def ask_worker(self, name: str, what: str) -> bool:
        return bool(self._in_transaction(lambda: self._rows("ask worker", name=name, what=what)))

    def forget_worker(self, name: str) -> None:
        self._in_transaction(lambda: self._rows("forget worker", name=name))

    # -- credentials -------------------------------------------------------------------------------------------------

    def keep_credential(self, credential: Credential) -> bool:
        fields = credential.as_dict()
        values = {**fields, "grants": json.dumps(fields["grant"])}
        return self._in_transaction(self._keep_credential, values)

    def _keep_credential(self, values: Json) -> bool:
        self._rows("drop expired credentials", now_ms=self._now().wall_ms)
        self._rows("drop orphaned credentials")
        return bool(self._rows("keep credential", **values))

    def credential(self, digest: str) -> Credential | None:
        rows = self._rows("credential", digest=digest)
        return _credential(rows[0]) if rows else None

    def credentials(self, kind: str) -> list[Credential]:
        return [_credential(row) for row in self._rows("credentials", kind=kind)]

    def take_credential(self, digest: str) -> Credential | None:
        rows = self._in_transaction(lambda: self._rows("take credential", digest=digest))
        return _credential(rows[0]) if rows else None

    def drop_credential(self, kind: str, name: str) -> bool:
        return self._in_transaction(self._drop_credential, kind, name)

    def _drop_credential(self, kind: str, name: str) -> bool:
        is_dropped = bool(self._rows("drop credential", kind=kind, name=name))
        self._rows("drop orphaned credentials")
        return is_dropped

    # -- consumers ---------------------------------------------------------------------------------------------------

    def position(self, consumer: str) -> str | None:
        rows = self._rows("position", name=consumer)
        return str(rows[0][0]) if rows else None

    def save_position(self, consumer: str, position: str) -> None:
        self._in_transaction(lambda: self._rows("save position", name=consumer, position=position))

    # -- rows that mam cannot read -----------------------------------------------------------------------------------

    def _skip_unreadable(self, do: Callable[[], T]) -> T:
        """Does it again without the row that it stumbled over; a row that is met twice ends this."""
        met: set[object] = set()
        while True:
            try:
                return do()
            except BadRecord as bad:
                number = bad.facts.get("row")
                if number is None or number in met:
                    raise
                met.add(number)
                self._in_transaction(lambda: self._rows("mark unreadable", number=number))  # noqa: B023

    def problems(self) -> list[Problem]:
        found = dict(self._unreadable)
        for row in self._rows("unreadable jobs"):
            try:
                job = parse_row(row, self.address).job
            except BadRecord as bad:
                found[row[0]] = f"{bad.facts['problem']}; no worker can claim it until it is repaired"
            else:
                self._in_transaction(self._mark_readable, job)
        return [Problem(file=f"{self.address} job {job_id}", problem=why) for job_id, why in found.items()]

    def _mark_readable(self, job: Job) -> None:
        """The row can be read again."""
        self._rows("mark readable", number=job.number)
        if job.exclusive is not None:
            self._blocking.rebalance(job.exclusive)


def _credential(row: Any) -> Credential:
    from mam.jobs.credential import Credential

    kind, name, digest, parent, made_ms, expires_ms, grants = row
    return Credential(
        kind=kind, name=name, digest=digest, parent=parent, made_ms=made_ms, expires_ms=expires_ms,
        grant=json.loads(grants),
    )  # fmt: skip


def _clocks(moment: Moment) -> Json:
    return {"boot_id": moment.boot_id, "boot_ms": moment.boot_ms, "wall_ms": moment.wall_ms}
