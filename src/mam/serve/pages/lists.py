"""The list of jobs: grouped by what happens now, or filtered by the address of the page."""

from __future__ import annotations

from urllib.parse import urlencode

from mam.errors import BadInput
from mam.jobs.status import ENDED, PENDING, RUNNING, WAITING, Status
from mam.registry.listing import JobFilter
from mam.serve.pages.rows import JobRow, is_after, job_row
from mam.serve.pages.when_idle import Reasons
from mam.stores.port import Query
from mam.util.frozen import Frozen
from mam.util.human_time import parse_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mam.access.reading import AuthorizedReading, Page
    from mam.jobs.record import Job

ROWS_ASKING, ROWS_RUNNING, ROWS_QUEUED, ROWS_ENDED, ROWS_FILTERED = 50, 100, 50, 30, 100
TEXT_LIMIT = 200
ASKS = "asks"
STATES = (ASKS, *Status)


class Filters(Frozen):
    """What the address of the page asks for."""

    state: str = ""
    label: str = ""
    agent: str = ""
    host: str = ""
    search: str = ""
    since: str = ""
    below: int | None = None

    @property
    def is_any(self) -> bool:
        return bool(self.state or self.label or self.agent or self.host or self.search or self.since or self.below)

    def query(self, **changes: str) -> str:
        """The query part of the address with some filters changed; the page in the list is not kept."""
        values = {**self.as_dict(), "below": None, **changes}
        named = {"q": values.pop("search"), **values}
        return urlencode({name: value for name, value in named.items() if value})


class Group(Frozen):
    name: str
    title: str
    rows: tuple[JobRow, ...]
    total: int | None
    """All jobs of the group; None if they were not counted."""
    more: str = ""
    """The query of a page with more of them, if some are left out."""
    more_text: str = "All of them"
    seen_line: int | None = None
    """The row before which the viewer looked last."""


class JobList(Frozen):
    filters: Filters
    groups: tuple[Group, ...]
    labels: tuple[str, ...]
    agents: tuple[str, ...]
    next_query: str = ""
    """The query of the next page of a filtered list."""
    is_partial: bool = False
    """Whether the search stopped before it had looked at every job."""
    problem: str = ""
    """A filter that is not valid."""


def parse_filters(values: Mapping[str, str]) -> Filters:
    """From the address. What it does not know is left out, so that an old link still opens."""
    texts = {name: values.get(name, "").strip()[:TEXT_LIMIT] for name in ("state", "label", "agent", "host", "since")}
    below = values.get("below", "")
    number = int(below) if below.isascii() and below.isdigit() and len(below) < 16 else None
    state = texts.pop("state")
    return Filters(
        state=state if state in STATES else "", search=values.get("q", "").strip()[:TEXT_LIMIT], below=number, **texts
    )


def job_list(reading: AuthorizedReading, filters: Filters, looked_at: str | None = None) -> JobList:
    """`looked_at`: when this viewer last looked at the list."""
    try:
        groups, next_query, partial = _found(reading, filters, looked_at)
        problem = ""
    except BadInput as bad:
        groups, next_query, partial, problem = (), "", False, str(bad)
    rows = [row for group in groups for row in group.rows]
    return JobList(
        filters=filters, groups=groups, next_query=next_query, is_partial=partial, problem=problem,
        labels=tuple(sorted({*(row.label for row in rows), *filter(None, [filters.label])})),
        agents=tuple(sorted({*(row.agent for row in rows), *filter(None, [filters.agent])})),
    )  # fmt: skip


def _found(reading: AuthorizedReading, filters: Filters, looked_at: str | None) -> tuple[tuple[Group, ...], str, bool]:
    rows = _Rows(reading)
    if not filters.is_any:
        return tuple(_overview(reading, rows, looked_at)), "", False
    page = reading.page(_wanted(reading, filters), ROWS_FILTERED)
    next_query = "" if page.below is None else f"{filters.query()}&below={page.below}".lstrip("&")
    title = "Found" if page.jobs or page.below is None else "Nothing found yet"
    group = Group(name="found", title=title, rows=rows.of(page.jobs), total=None)
    is_partial = page.below is not None and len(page.jobs) < ROWS_FILTERED
    return (group,), next_query, is_partial


def _wanted(reading: AuthorizedReading, filters: Filters) -> JobFilter:
    since = None
    if filters.since:
        since = parse_since(filters.since, reading.registry.store.clock.now().wall_ms)
    asking = filters.state == ASKS
    statuses = frozenset({Status(filters.state)}) if filters.state and not asking else None
    query = Query(statuses=statuses, label=filters.label or None, since=since, asking=asking, below=filters.below)
    return JobFilter(query=query, agent=filters.agent or None, host=filters.host or None, search=filters.search or None)


def _overview(reading: AuthorizedReading, rows: _Rows, looked_at: str | None) -> Iterable[Group]:
    asking = _page(reading, Query(asking=True), ROWS_ASKING).jobs
    ids = {job.job_id for job in asking}
    running = _page(reading, Query(statuses=frozenset({RUNNING})), ROWS_RUNNING)
    working = tuple(job for job in running.jobs if job.job_id not in ids)
    queued = _page(reading, Query(statuses=frozenset({PENDING, WAITING})), ROWS_QUEUED)
    ended = _page(reading, Query(statuses=ENDED), ROWS_ENDED)
    counts = _counts(reading)
    yield Group(name="asks", title="Asks", rows=rows.of(asking), total=len(asking),
                more="state=asks" if len(asking) == ROWS_ASKING else "")  # fmt: skip
    yield Group(name="running", title="Running", rows=rows.of(working),
                total=_rest(counts, len(asking), RUNNING) if running.below else len(working),
                more="state=running" if running.below else "")  # fmt: skip
    yield Group(name="queued", title="Waiting and pending", rows=rows.of(queued.jobs),
                total=_rest(counts, 0, PENDING, WAITING), more="state=pending" if queued.below else "",
                more_text="All pending jobs")  # fmt: skip
    latest = sorted(ended.jobs, key=lambda job: (job.ended_at or job.updated_at, job.number), reverse=True)
    yield Group(name="ended", title="Ended", rows=rows.of(latest), total=_rest(counts, 0, *ENDED),
                more="since=7d" if ended.below else "", more_text="All jobs of the last week",
                seen_line=_seen_line(latest, looked_at))  # fmt: skip


def _seen_line(jobs: list[Job], looked_at: str | None) -> int | None:
    """Where the jobs end that ended since the viewer looked; None if none or all of them did."""
    new = sum(is_after(job.ended_at, looked_at) for job in jobs)
    return new if 0 < new < len(jobs) else None


def _page(reading: AuthorizedReading, query: Query, limit: int) -> Page:
    return reading.page(JobFilter(query=query), limit)


def _counts(reading: AuthorizedReading) -> dict[str, int] | None:
    from mam.errors import NotAllowed

    try:
        return reading.counts()
    except NotAllowed:
        return None


def _rest(counts: dict[str, int] | None, less: int, *statuses: Status) -> int | None:
    return None if counts is None else max(0, sum(counts.get(status, 0) for status in statuses) - less)


class _Rows:
    """Makes rows; what they share is read once."""

    def __init__(self, reading: AuthorizedReading) -> None:
        self._reading = reading
        self._reasons = Reasons(reading)
        self._now_ms = reading.registry.store.clock.now().wall_ms

    def of(self, jobs: Iterable[Job]) -> tuple[JobRow, ...]:
        return tuple(self._row(job) for job in jobs)

    def _row(self, job: Job) -> JobRow:
        state = self._reading.state(job) if job.status is RUNNING else None
        return job_row(job, state, self._reasons.of(job), self._now_ms)
