"""Hosts, workers and live sessions, each with what it holds; labels with their queues and pauses."""

from __future__ import annotations

from itertools import islice

from mam.access.grant import ADMIN
from mam.errors import MamError
from mam.jobs.draft import draft_job
from mam.jobs.pause import Pause
from mam.jobs.record import MAX_COUNT
from mam.jobs.status import PENDING
from mam.jobs.workers import DRAIN, STOP
from mam.serve.pages.moments import When, age, ago
from mam.serve.pages.rows import title_of
from mam.stores.port import Query
from mam.util.clock import parse_time
from mam.util.frozen import Frozen
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mam.access.registry import AuthorizedRegistry
    from mam.agents.lookup import Lookup
    from mam.agents.port import Directory
    from mam.jobs.record import Job
    from mam.jobs.workers import Holder
    from mam.stores.port import QueuedJob
    from mam.util.clock import Moment

    OpenDirectory = Callable[[], Directory]

LABELS_SHOWN, SESSIONS_SHOWN, RATE_LOOKED_AT, HOUR_MS = 200, 200, 2_000, 3_600_000
QUEUED_READ = 20_000
"""Pending jobs that are read for their ages."""
_STATES = {None: "live", DRAIN: "draining", STOP: "stopping"}


class Held(Frozen):
    job_id: str
    short: str
    title: str
    since: When | None


class WorkerRow(Frozen):
    name: str
    host: str
    state: str
    labels: str
    agents: str
    slots: str
    holds: tuple[Held, ...]
    seen: When | None
    version: str
    is_worker: bool
    """False for the owner of claims that no live worker has, such as a `pick` loop."""


class LabelRow(Frozen):
    name: str
    depth: int
    oldest: When | None
    ended_per_hour: int
    workers: int
    pause: str
    """Why it is paused; empty if it is not."""
    is_own_pause: bool
    """Whether it is a pause of this label alone, which `resume` of the label ends."""


class SessionRow(Frozen):
    name: str
    agent: str
    session: str
    host: str
    agent_id: str
    generation: str
    is_live: bool
    holds: tuple[Held, ...]
    look: str
    state: str
    source: str
    since: When | None


class Workers(Frozen):
    workers: tuple[WorkerRow, ...]
    labels: tuple[LabelRow, ...]
    sessions: tuple[SessionRow, ...]
    pauses: tuple[tuple[Pause, str], ...]
    hosts: int
    may_change: bool
    problem: str = ""


def workers_page(registry: AuthorizedRegistry, sessions: OpenDirectory | None) -> Workers:
    """`sessions` opens the directory of live sessions of this host."""
    store = registry.registry.store
    now = store.clock.now()
    holders = registry.holders()
    pauses = [one for one in registry.pauses() if one.is_active(now)]
    rows, problem = _sessions(sessions, holders, now.wall_ms)
    return Workers(
        workers=tuple(_worker(holder, now.wall_ms) for holder in holders),
        labels=_labels(registry, holders, pauses, now.wall_ms), sessions=rows, problem=problem,
        pauses=tuple((one, describe(one)) for one in pauses),
        hosts=len({holder.worker.host for holder in holders if holder.worker is not None}),
        may_change=registry.viewer.may(ADMIN),
    )  # fmt: skip


def describe(pause: Pause) -> str:
    until = "" if pause.until is None else f" until {pause.until[:16].replace('T', ' ')} UTC"
    why = f": {pause.reason}" if pause.reason else ""
    return one_line(f"{pause.scope} paused{until}{why}")


def _worker(holder: Holder, now_ms: int) -> WorkerRow:
    worker = holder.worker
    holds = tuple(_held(job, now_ms) for job in holder.jobs)
    if worker is None:
        labels = ", ".join(sorted({job.agent_session for job in holder.jobs}))
        return WorkerRow(
            name=one_line(holder.owner or "an unnamed owner"), host="", state="no worker", labels=one_line(labels),
            agents="", slots=f"{len(holds)} held", holds=holds, seen=None, version="", is_worker=False,
        )  # fmt: skip
    return WorkerRow(
        name=one_line(worker.name), host=one_line(worker.host), state=_STATES.get(worker.asked, "live"),
        labels=one_line(", ".join(worker.labels)), agents=one_line(", ".join(worker.agents)),
        slots=f"{len(holds)} held, {worker.concurrency} at a time", holds=holds, seen=ago(worker.seen_at, now_ms),
        version=one_line(worker.version), is_worker=True,
    )  # fmt: skip


def _held(job: Job, now_ms: int) -> Held:
    return Held(job_id=job.job_id, short=job.job_id[:8], title=title_of(job), since=age(job.claimed_at, now_ms))


def _labels(
    registry: AuthorizedRegistry, holders: list[Holder], pauses: list[Pause], now_ms: int
) -> tuple[LabelRow, ...]:
    queues = _queues(registry)
    served = [label for holder in holders if holder.worker is not None for label in holder.worker.labels]
    ended = _ended_in_last_hour(registry, now_ms)
    names = sorted({*queues, *served, *ended, *(one.label for one in pauses if one.label)})[:LABELS_SHOWN]
    rows = []
    for name in names:
        queue = queues.get(name, [])
        pause = next((one for one in pauses if one.label in (None, name) and one.agent is None), None)
        rows.append(
            LabelRow(
                name=name,
                depth=len(queue) or _depth(registry, name),
                oldest=_oldest(registry, queue, now_ms),
                ended_per_hour=ended.get(name, 0),
                workers=served.count(name),
                pause="" if pause is None else describe(pause),
                is_own_pause=pause is not None and pause.label == name,
            )
        )
    return tuple(rows)


def _queues(registry: AuthorizedRegistry) -> dict[str, list[QueuedJob]]:
    """The pending jobs of each label. Of very many, the labels of the latest jobs alone, without their queues."""
    store = registry.registry.store
    if registry.counts().get(PENDING, 0) > QUEUED_READ:
        latest = islice(registry.registry.select(Query()), RATE_LOOKED_AT)
        return {job.agent_session: [] for job in latest}
    queues: dict[str, list[QueuedJob]] = {}
    for queued in store.queue():
        queues.setdefault(queued.label, []).append(queued)
    return queues


def _depth(registry: AuthorizedRegistry, label: str) -> int:
    """How many jobs would be claimed before the least one of all, which the database counts quickly."""
    least = draft_job(job_id="depth", prompt="-", agent="-", label=label, priority=-1000)
    return registry.registry.store.ahead_of(least.replace(number=MAX_COUNT))


def _oldest(registry: AuthorizedRegistry, queue: list[QueuedJob], now_ms: int) -> When | None:
    if not queue:
        return None
    try:
        job = registry.registry.get_exact(min(queue, key=lambda one: one.number).job_id)
    except MamError:
        return None
    return age(job.created_at, now_ms)


def _ended_in_last_hour(registry: AuthorizedRegistry, now_ms: int) -> dict[str, int]:
    """Among the newest jobs; a busy store shows at most so many."""
    counts: dict[str, int] = {}
    for looked, job in enumerate(registry.registry.select(Query())):
        if looked == RATE_LOOKED_AT:
            break
        if job.status is not PENDING and _ended_after(job, now_ms - HOUR_MS):
            counts[job.agent_session] = counts.get(job.agent_session, 0) + 1
    return counts


def _ended_after(job: Job, at_ms: int) -> bool:
    try:
        return job.ended_at is not None and parse_time(job.ended_at) >= at_ms
    except ValueError:
        return False


def _sessions(sessions: OpenDirectory | None, holders: list[Holder], now_ms: int) -> tuple[tuple[SessionRow, ...], str]:
    """From the directory of sessions of this host's user; a directory that cannot be read is reported."""
    if sessions is None:
        return (), ""
    held = [job for holder in holders for job in holder.jobs]
    try:
        directory = sessions()
        rows = _session_rows(directory.read_all(), directory.clock.now(), held, now_ms)
        return tuple(islice(rows, SESSIONS_SHOWN)), ""
    except (MamError, OSError) as error:
        return (), str(error)


def _session_rows(lookups: Iterable[Lookup], now: Moment, held: list[Job], now_ms: int) -> Iterable[SessionRow]:
    from mam.agents.activity import session_state
    from mam.agents.lookup import LIVE, resolve_lookup

    looks = {"working": "run", "asks": "ask", "needs permission": "ask", "quiet": "quiet", "done": "ok", "gone": "bad"}
    for lookup in lookups:
        answer = resolve_lookup(lookup, now)
        record = answer.record
        if record is None:
            continue
        state = session_state(record, now_ms) if record.live else None
        since = None if state is None or not state.at_ms else ago(_iso(state.at_ms), now_ms)
        own = [job for job in held if (job.claimant or {}).get("agent_id") == record.agent_id]
        yield SessionRow(
            name=one_line(record.agent_name), agent=one_line(record.identity.tool),
            host=one_line(record.mam.host or ""), agent_id=record.agent_id, generation=record.generation_id,
            session=one_line(record.terminal.current_session_name or record.terminal.last_session_name or ""),
            is_live=answer.kind == LIVE, look="idle" if state is None else looks.get(state.state, "idle"),
            state=answer.kind if state is None else state.state, source="" if state is None else state.source,
            since=since, holds=tuple(_held(job, now_ms) for job in own),
        )  # fmt: skip


def _iso(at_ms: int) -> str:
    from mam.util.clock import iso_milli

    return iso_milli(at_ms)
