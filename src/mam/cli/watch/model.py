"""The state of `mam watch`: loaded once from the store, then updated from the journal.

It counts pending jobs and keeps only the latest ended jobs, because there may be very many. A row loads what else it
needs when the screen shows it.
"""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest
from itertools import islice
from shlex import quote

from mam.cli.render.question import one_row
from mam.cli.render.text import first_line
from mam.errors import BadRecord, UnknownJob
from mam.events.event import PERMISSION_REQUIRED
from mam.jobs.activity import event_source
from mam.jobs.draft import HUMAN
from mam.jobs.question import open_questions
from mam.jobs.record import parse_job
from mam.jobs.status import CANCELLED, COMPLETED, ERROR, PENDING, RUNNING, WAITING
from mam.jobs.sweep import is_quiet
from mam.stores.common import matches, queued_job
from mam.stores.port import Query, QueuedJob
from mam.util.clock import iso_second, parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.change import AuditRecord
    from mam.jobs.record import Job
    from mam.stores.port import Entry, Store
    from mam.util.clock import Moment

KEPT_ENDED = 200
"""For each kind: more than a screen shows."""
FRESH_MS = 3_600_000
"""How long a job in error needs attention."""
PROMPT_KEPT = 300


class LastEvent(Frozen):
    """The last event of a running job."""

    event: str
    detail: str
    quiet: bool = False
    source: str = ""
    """Where the event comes from: a hook, the agent, its process or its screen."""
    is_question: bool = False
    """Whether it reports a question of the record, which says by itself whether it is still open."""


class Attention(Frozen):
    """Why a person should look at a job."""

    word: str
    why: str = ""


class Model:
    def __init__(self, store: Store, query: Query) -> None:
        self._store = store
        self._query = query
        self.queued: dict[str, QueuedJob] = {}
        self.open: dict[str, Job] = {}
        """Running and waiting, and the pending jobs for a person."""
        self.failed: dict[str, Job] = {}
        self.done: dict[str, Job] = {}
        self.last_events: dict[str, LastEvent] = {}
        self.retried: set[str] = set()

    # -- reading and following -------------------------------------------------------------------------------------

    def load(self) -> None:
        """Load every open job and the latest ended jobs."""
        for status in (RUNNING, WAITING):
            for job in self._select(status, None):
                self._put(job)
        if self._query.statuses is None or PENDING in self._query.statuses:
            for one in self._store.queue(self._query.label, self._query.since):
                if one.agent == HUMAN:
                    self._put(self._store.get(one.job_id))
                else:
                    self.queued[one.job_id] = one
        for statuses in ((ERROR,), (COMPLETED, CANCELLED)):
            ended = [job for status in statuses for job in self._select(status, KEPT_ENDED)]
            for job in sorted(ended, key=lambda job: (job.ended_at or job.updated_at, job.number)):
                self._put(job)
        for job in self.open.values():
            if job.status is RUNNING:
                self._load_last_event(job)
        fresh = iso_second(self._store.clock.now().wall_ms - FRESH_MS)
        for job in self.failed.values():
            if (job.ended_at or "") >= fresh and self._is_retried(job.job_id):
                self.retried.add(job.job_id)

    def apply(self, entry: Entry) -> None:
        self._forget(entry.job_id) if entry.fields is None else self._change(entry, entry.fields)

    def _select(self, status: str, most: int | None) -> Iterable[Job]:
        statuses = frozenset({status}) if self._query.statuses is None else self._query.statuses & {status}
        return islice(self._store.select(self._query.replace(statuses=statuses)), most) if statuses else ()

    def _change(self, entry: Entry, fields: dict[str, object]) -> None:
        before = self._known(entry.job_id)
        job = self._after(entry.job_id, before, fields)
        if job is None:
            self._forget(entry.job_id)
            return
        if job.retry_of is not None:
            self.retried.add(job.retry_of)
        if before is None or before.status is not job.status or job.status is PENDING:
            self._forget(job.job_id)
        if matches(self._query, job):
            self._put(job)
            for line in entry.lines:
                self._note_event(job, line)

    def _after(self, job_id: str, before: Job | None, fields: dict[str, object]) -> Job | None:
        """The job after the entry. A job that the model does not keep is read from the store; it may be newer than the
        entry, which the following entries correct."""
        try:
            if before is not None:
                return parse_job({**before.to_json(), **fields}, job_id)
            return parse_job(fields, job_id) if "prompt" in fields else self._store.get(job_id)
        except (UnknownJob, BadRecord):
            return None

    def _known(self, job_id: str) -> Job | None:
        return self.open.get(job_id) or self.failed.get(job_id) or self.done.get(job_id)

    def _put(self, job: Job) -> None:
        if job.status is PENDING and job.agent != HUMAN:
            self.queued[job.job_id] = queued_job(job)
            return
        job = job.replace(prompt=first_line(job.prompt[: PROMPT_KEPT * 4])[:PROMPT_KEPT], result=None)
        kept = self.failed if job.status is ERROR else self.done if job.status.ended else self.open
        kept[job.job_id] = job
        if kept is not self.open and len(kept) > KEPT_ENDED:
            oldest = next(iter(kept))
            del kept[oldest]
            self.retried.discard(oldest)

    def _forget(self, job_id: str) -> None:
        for kept in (self.queued, self.open, self.failed, self.done, self.last_events):
            kept.pop(job_id, None)

    def _note_event(self, job: Job, line: AuditRecord) -> None:
        if line.get("event") == "published" and job.status is RUNNING:
            payload = line["payload"]
            data = payload.get("data", {})
            self.last_events[job.job_id] = LastEvent(
                event=payload["event"],
                detail=payload["detail"],
                quiet=data.get("quiet") is True,
                source=event_source(data),
                is_question="question" in data,
            )

    def _load_last_event(self, job: Job) -> None:
        for line in reversed(self._store.events(job.job_id)):
            if "event" in line:
                since = job.claimed_at or ""
                if line.get("timestamp", "") >= since:
                    self._note_event(job, {"event": "published", "payload": line})
                return

    def _is_retried(self, job_id: str) -> bool:
        newest = self._store.newest(job_id)
        return newest is not None and newest.job_id != job_id

    # -- what is shown ---------------------------------------------------------------------------------------------

    def attention(self, job: Job, now: Moment) -> Attention | None:
        """Why the job needs a person; None if it does not."""
        if job.status is ERROR:
            fresh = now.wall_ms - parse_time(job.ended_at or job.updated_at) < FRESH_MS
            is_open = fresh and job.seen is None and job.job_id not in self.retried
            return Attention(word="error", why=job.reason or "") if is_open else None
        if job.status is PENDING and job.agent == HUMAN:
            return Attention(word="yours", why=f"not taken yet: mam pick -s {quote(job.agent_session)}")
        if job.status is not RUNNING:
            return None
        if job.questions and (asked := open_questions(job)):
            return Attention(word="asks", why=one_row(asked[0]))
        last_event = self.last_events.get(job.job_id)
        if last_event is not None and last_event.event == PERMISSION_REQUIRED and not last_event.is_question:
            return Attention(word="asks", why=f"{last_event.detail} ({last_event.source})")
        if job.agent == HUMAN:
            return Attention(word="yours")
        if last_event is not None and last_event.quiet:
            return Attention(word="quiet", why=last_event.detail)
        return Attention(word="quiet", why="no output and no event") if is_quiet(job, now) else None

    def counts(self, now: Moment) -> tuple[int, int, int, int, int]:
        """The jobs that need a person, that run, wait, are pending, and the kept ones that ended in error."""
        needs = sum(self.attention(job, now) is not None for job in (*self.open.values(), *self.failed.values()))
        by_status = Counter(job.status for job in self.open.values())
        pending = len(self.queued) + by_status[PENDING]
        return needs, by_status[RUNNING], by_status[WAITING], pending, len(self.failed)

    def next_of(self, label: str, count: int) -> list[str]:
        """The pending jobs of a label that workers claim first."""
        mine = (
            (-queued.priority, queued.number, job_id) for job_id, queued in self.queued.items() if queued.label == label
        )
        return [job_id for _, _, job_id in nsmallest(count, mine)]
