"""The reference implementation: the whole port in dictionaries. A fake for tests, and the model for other stores."""

from __future__ import annotations

from collections import Counter
from threading import Condition

from mam.errors import AlreadyRegistered, UnknownJob
from mam.jobs import acts
from mam.jobs.change import Change
from mam.jobs.continuation import bound_host
from mam.jobs.credential import TOKEN
from mam.jobs.dependency import settle_dependency
from mam.jobs.ending import end
from mam.jobs.generation import Generations, release_displaced, supersede
from mam.jobs.pause import blocking_pause, probe_jobs, seconds_until_lifted
from mam.jobs.record import DEPENDENCY
from mam.jobs.status import PENDING, RUNNING
from mam.jobs.summary import summarise
from mam.jobs.sweep import SWEEP_LIMIT, is_due, seconds_until_due, settle
from mam.jobs.workers import STOP
from mam.stores.common import (
    apply_claim,
    archived_line,
    changed_fields,
    check_dependencies,
    check_exclusive,
    due_ms,
    event_in_line,
    import_lines,
    matches,
    queued_job,
    soonest,
)
from mam.stores.memory_outputs import MemoryOutputs
from mam.stores.port import ClaimRequest, Entry, JobWithEvents, Query, QueuedJob, Registration
from mam.util.clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mam.jobs.change import AuditRecord
    from mam.jobs.credential import Credential
    from mam.jobs.ending import End
    from mam.jobs.pause import Pause
    from mam.jobs.record import Job, Json
    from mam.jobs.workers import WorkerEntry
    from mam.stores.interest import Interest
    from mam.stores.port import Act, Problem
    from mam.util.clock import Clock, Moment


class MemoryStore:
    """Lives as long as its object; safe for threads."""

    address = "memory"
    journal_id = "memory"
    home = None

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self._jobs: dict[str, Job] = {}
        self._entries: list[Entry] = []
        self._pauses: dict[tuple[str | None, str | None], Pause] = {}
        self._workers: dict[str, WorkerEntry] = {}
        self._credentials: dict[tuple[str, str], Credential] = {}
        self._secrets: dict[str, dict[str, str]] = {}
        self._generations: dict[str, Generations] = {}
        self._archive: dict[str, JobWithEvents] = {}
        self._positions: dict[str, str] = {}
        self._summarised_upto = 0
        self._changed = Condition()
        self.outputs = MemoryOutputs(self)

    def register(self, draft: Job) -> Registration:
        with self._changed:
            known = self._registered_before(draft)
            if known is not None:
                return Registration(job=known, created=False)
            self._check_free(draft.job_id)
            number = max((job.number for job in self._jobs.values()), default=0) + 1
            needed = check_dependencies(draft, self._dependencies(draft), self.address, self.newest)
            change = acts.register(draft, number, self.clock.now(), needed)
            return Registration(job=self._commit(change), created=True)

    def register_all(self, drafts: Sequence[Job]) -> list[Job]:
        with self._changed:
            ids = [draft.job_id for draft in drafts]
            for rank, job_id in enumerate(ids):
                self._check_free(job_id, *ids[:rank])
            return [self.register(draft).job for draft in drafts]

    def _check_free(self, job_id: str, *others: str) -> None:
        if job_id in self._jobs or job_id in self._archive or job_id in others:
            raise AlreadyRegistered(job=job_id)

    def change(self, job_id: str, act: Act) -> Job:
        with self._changed:
            before = self.get(job_id)
            change = act(before, self.clock.now())
            check_exclusive(before, change.job, self.holder)
            return self._commit(change)

    def end_job(self, job_id: str, ended: End) -> Job:
        return self.change(job_id, lambda job, moment: end(job, moment, ended))

    def claim(self, request: ClaimRequest) -> Job | None:
        with self._changed:
            if request.agent_id is not None and request.generation_id is not None:
                self.announce(request.agent_id, request.generation_id)
            moment = self.clock.now()
            self._sweep(moment)
            pending = [job for job in self._jobs.values() if self._may_take(request, job, moment)]
            if not pending:
                return None
            tried = probe_jobs(self.pauses(), request.label, moment)
            first = min(pending, key=lambda job: (job.job_id not in tried, claim_order(job)))
            return self._commit(apply_claim(first, request, moment))

    def announce(self, agent_id: str, generation_id: str) -> list[Job]:
        with self._changed:
            moment = self.clock.now()
            self._generations[agent_id] = supersede(self._generations.get(agent_id), agent_id, generation_id)
            changes = [release_displaced(job, agent_id, generation_id, moment) for job in self._jobs.values()]
            return [self._commit(change) for change in changes if change.lines]

    def generations(self) -> dict[str, Generations]:
        return dict(self._generations)

    def sweep(self) -> list[Job]:
        with self._changed:
            return self._sweep(self.clock.now())

    def get(self, job_id: str) -> Job:
        try:
            with self._changed:  # otherwise a reader could see a job before its last entry
                return self._jobs[job_id]
        except KeyError:
            raise UnknownJob(job=job_id, store=self.address) from None

    def ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
        with self._changed:
            return sorted(job_id for job_id in self._jobs if job_id.startswith(prefix))[:limit]

    def children(self, job_id: str) -> list[str]:
        with self._changed:
            found = [job for job in self._jobs.values() if job.parent_id == job_id]
        return [job.job_id for job in sorted(found, key=lambda job: job.number)]

    def select(self, query: Query) -> Iterator[Job]:
        with self._changed:
            matching = [job for job in self._jobs.values() if matches(query, job)]
        return iter(sorted(matching, key=lambda job: -job.number))

    def queue(self, label: str | None = None, since: str | None = None) -> list[QueuedJob]:
        pending = self.select(Query(statuses=frozenset({PENDING}), label=label, since=since))
        return [queued_job(job) for job in reversed(list(pending))]

    def counts(self) -> dict[str, int]:
        with self._changed:
            return dict(Counter(job.status.value for job in self._jobs.values()))

    def ended_before(self, before: str) -> dict[str, int]:
        with self._changed:
            jobs = self._jobs.values()
            ended = [job for job in jobs if job.status.ended and (job.ended_at or job.updated_at) < before]
            return dict(Counter(job.status.value for job in ended))

    def ahead_of(self, job: Job) -> int:
        with self._changed:
            rivals = [other for other in self._jobs.values() if is_claimable(other, job.agent_session)]
        return sum(claim_order(other) < claim_order(job) for other in rivals)

    def newest(self, job_id: str) -> Job | None:
        with self._changed:
            known = self._all()
            found = known.get(job_id)
            retries = {job.retry_of: job for job in known.values() if job.retry_of is not None}
            while job_id in retries:
                found = retries[job_id]
                job_id = found.job_id
            return found

    def holder(self, key: str) -> str | None:
        with self._changed:
            running = [job.job_id for job in self._jobs.values() if job.exclusive == key and job.status is RUNNING]
        return running[0] if running else None

    def pauses(self) -> list[Pause]:
        return list(self._pauses.values())

    def pause(self, pause: Pause) -> None:
        with self._changed:
            self._pauses[pause.agent, pause.label] = pause
            self._changed.notify_all()

    def resume(self, agent: str | None, label: str | None) -> bool:
        with self._changed:
            found = self._pauses.pop((agent, label), None)
            self._changed.notify_all()
        return found is not None

    def note_worker(self, entry: WorkerEntry) -> str | None:
        with self._changed:
            known = self._workers.get(entry.name)
            asked = None if known is None else known.asked
            self._workers[entry.name] = entry.replace(asked=asked)
            return asked

    def workers(self) -> list[WorkerEntry]:
        with self._changed:
            return list(self._workers.values())

    def ask_worker(self, name: str, what: str) -> bool:
        with self._changed:
            known = self._workers.get(name)
            if known is not None and known.asked != STOP:
                self._workers[name] = known.replace(asked=what)
            return known is not None

    def forget_worker(self, name: str) -> None:
        with self._changed:
            self._workers.pop(name, None)

    def keep_credential(self, credential: Credential) -> bool:
        with self._changed:
            now_ms = self.clock.now().wall_ms
            self._credentials = {name: one for name, one in self._credentials.items() if one.is_live(now_ms)}
            self._drop_orphaned()
            known = self._credentials.get((credential.kind, credential.name))
            if known is not None:
                return known.digest == credential.digest
            if credential.kind != TOKEN and (TOKEN, credential.parent) not in self._credentials:
                return False
            self._credentials[credential.kind, credential.name] = credential
            return True

    def _drop_orphaned(self) -> None:
        self._credentials = {
            name: one for name, one in self._credentials.items()
            if one.kind == TOKEN or (TOKEN, one.parent) in self._credentials
        }  # fmt: skip

    def credential(self, digest: str) -> Credential | None:
        with self._changed:
            return next((one for one in self._credentials.values() if one.digest == digest), None)

    def credentials(self, kind: str) -> list[Credential]:
        with self._changed:
            return [one for _, one in sorted(self._credentials.items()) if one.kind == kind]

    def take_credential(self, digest: str) -> Credential | None:
        with self._changed:
            found = self.credential(digest)
            return None if found is None else self._credentials.pop((found.kind, found.name))

    def drop_credential(self, kind: str, name: str) -> bool:
        with self._changed:
            is_dropped = self._credentials.pop((kind, name), None) is not None
            self._drop_orphaned()
            return is_dropped

    def keep_secrets(self, job_id: str, secrets: dict[str, str]) -> None:
        self._secrets[job_id] = {**self.secrets(job_id), **secrets}

    def secrets(self, job_id: str) -> dict[str, str]:
        return self._secrets.get(job_id, {})

    def problems(self) -> list[Problem]:
        return []

    def events(self, job_id: str) -> list[AuditRecord]:
        lines: list[AuditRecord] = []
        for entry in self._entries:
            if entry.job_id == job_id:
                lines = [*entry.lines] if entry.lines[0]["event"] == "migrated" else [*lines, *entry.lines]
        return [event for event in map(event_in_line, lines) if event is not None]

    def archive(self, job_ids: Sequence[str]) -> list[str]:
        with self._changed:
            newest = max((job.number for job in self._jobs.values()), default=0)
            asked = [self._jobs[job_id] for job_id in job_ids if job_id in self._jobs]
            moved = [job for job in asked if job.status.ended and job.number < newest]
            for job in moved:
                self._archive[job.job_id] = JobWithEvents(job=job, events=self.events(job.job_id))
                del self._jobs[job.job_id]
                self._append(job.job_id, None, (archived_line(job.job_id, self.clock.now()),))
            return [job_id for job_id in job_ids if job_id in self._archive]

    def archived(self, job_id: str) -> JobWithEvents | None:
        return self._archive.get(job_id)

    def archived_ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
        return sorted(job_id for job_id in self._archive if job_id.startswith(prefix))[:limit]

    def archive_contents(self, *, newest_first: bool = False) -> Iterator[JobWithEvents]:
        return iter(sorted(self._archive.values(), key=lambda kept: kept.job.number, reverse=newest_first))

    def import_jobs(self, batch: Sequence[JobWithEvents], *, archived: bool = False) -> None:
        with self._changed:
            for kept in batch:
                if archived:
                    self._archive[kept.job.job_id] = kept
                else:
                    self._commit(Change(job=kept.job, lines=import_lines(kept, self.clock.now())))

    def _all(self) -> dict[str, Job]:
        return {**{job_id: kept.job for job_id, kept in self._archive.items()}, **self._jobs}

    def summarise(self, job_ids: Sequence[str], below: int) -> int:
        with self._changed:
            before = len(self._entries)
            for job_id in job_ids:
                of_job = [one for one in self._entries if one.job_id == job_id and one.number < below and one.fields]
                if job_id in self._archive and len(of_job) > 1:
                    fields, lines = summarise([(one.number, one.fields, one.lines) for one in of_job])
                    gone, last = {one.number for one in of_job[:-1]}, of_job[-1]
                    summary = last.replace(fields=fields, lines=tuple(lines))
                    kept = [summary if one is last else one for one in self._entries]
                    self._entries = [one for one in kept if one.number not in gone]
                    self._summarised_upto = max(self._summarised_upto, below)
            return before - len(self._entries)

    def unsummarised(self, below: int) -> list[str]:
        with self._changed:
            counted = Counter(one.job_id for one in self._entries if one.number < below and one.fields)
            return [job_id for job_id in self._archive if counted[job_id] > 1]

    def summarised_upto(self) -> int:
        return self._summarised_upto

    def consumers(self) -> dict[str, str]:
        return dict(self._positions)

    def end_offset(self) -> str:
        return str(self._entries[-1].number if self._entries else 0)

    def entries(self, offset: str | None) -> Iterator[Entry]:
        return iter([entry for entry in self._entries if entry.number > int(offset or 0)])

    def wait(self, offset: str, timeout: float, interest: Interest | None = None) -> bool:  # noqa: ARG002
        with self._changed:
            if int(self.end_offset()) > int(offset):
                return True
            return self._changed.wait(timeout)

    def position(self, consumer: str) -> str | None:
        return self._positions.get(consumer)

    def save_position(self, consumer: str, position: str) -> None:
        self._positions[consumer] = position

    def due_in(self) -> float | None:
        with self._changed:
            moment = self.clock.now()
            if self._settled_dependents(moment):
                return 0.0
            return soonest(seconds_until_due(self._jobs.values(), moment), seconds_until_lifted(self.pauses(), moment))

    def close(self) -> None:
        """There is nothing to close."""

    def _registered_before(self, draft: Job) -> Job | None:
        for job in self._all().values():
            if draft.key is not None and job.key == draft.key:
                return job
            if draft.retry_of is not None and job.retry_of == draft.retry_of:
                return job
            if draft.continues is not None and job.continues == draft.continues:
                return job
        return None

    def _dependencies(self, job: Job) -> dict[str, Job | None]:
        return {job_id: self.newest(job_id) for job_id in job.after}

    def _may_take(self, request: ClaimRequest, job: Job, moment: Moment) -> bool:
        return (
            is_claimable(job, request.label)
            and request.job_id in (None, job.job_id)
            and bound_host(job) in ("", request.host)
            and (job.exclusive is None or self.holder(job.exclusive) is None)
            and blocking_pause(self.pauses(), job, moment) is None
        )

    def _sweep(self, moment: Moment) -> list[Job]:
        due = sorted((job for job in self._jobs.values() if is_due(job, moment)), key=due_ms)
        settled = [self._commit(settle(job, moment)) for job in due[:SWEEP_LIMIT]]
        return settled + [self._commit(change) for change in self._settled_dependents(moment)]

    def _settled_dependents(self, moment: Moment) -> list[Change]:
        waiting = [job for job in self._jobs.values() if job.waiting_for == DEPENDENCY]
        changes = [settle_dependency(job, self._dependencies(job), moment) for job in waiting]
        return [change for change in changes if change.lines][:SWEEP_LIMIT]

    def _commit(self, change: Change) -> Job:
        if change.lines:
            before = self._jobs.get(change.job.job_id)
            self._jobs[change.job.job_id] = change.job
            self._append(change.job.job_id, changed_fields(before, change), change.lines)
        return change.job

    def _append(self, job_id: str, fields: Json | None, lines: tuple[AuditRecord, ...]) -> None:
        number = int(self.end_offset()) + 1
        self._entries.append(Entry(offset=str(number), number=number, job_id=job_id, fields=fields, lines=lines))
        self._changed.notify_all()


def is_claimable(job: Job, label: str) -> bool:
    """Whether a claim for this label can take this job now."""
    return job.status is PENDING and job.agent_session == label


def claim_order(job: Job) -> tuple[int, int]:
    """Highest priority first, then the oldest by the store's own number."""
    return (-job.priority, job.number)
