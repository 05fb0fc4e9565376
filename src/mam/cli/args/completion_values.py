"""Completion values from the store: a limited number, newest first. Completion never creates a store."""

from __future__ import annotations

from itertools import islice

from mam.cli.render.text import first_line
from mam.config.settings import load_config
from mam.errors import MamError
from mam.jobs.input_rules import ID_PREFIX_SHOWN, is_job_id
from mam.jobs.status import CANCELLED, COMPLETED, ERROR, OPEN, PENDING, RUNNING, Status
from mam.stores.port import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mam.jobs.record import Job
    from mam.stores.port import Store

MAX_CANDIDATES = 60
"""More than a person reads, and few enough to load quickly."""
LABELS_FROM = 300
WAIT_SECONDS = 1.0
_STATUSES_BY_VERB = {
    "complete": frozenset({RUNNING}),
    "heartbeat": frozenset({RUNNING}),
    "release": frozenset({RUNNING}),
    "fail": OPEN,
    "cancel": OPEN,
    "publish": frozenset({PENDING, RUNNING}),
    "wait": OPEN,
    "retry": frozenset({ERROR, CANCELLED, COMPLETED}),
    "result": frozenset({COMPLETED}),
}
"""The statuses of jobs that a verb applies to; other verbs take any."""


def statuses(typed: str, *, several: bool) -> Iterator[tuple[str, str]]:
    """Statuses, also after a comma."""
    before, comma, last = typed.rpartition(",") if several else ("", "", typed)
    taken = before.split(",")
    for status in Status:
        if status.startswith(last) and status not in taken:
            yield f"{before}{comma}{status}", ""


def jobs(verb: str, typed: str, store_options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    store = _store(store_options)
    if store is None:
        return
    statuses_wanted = _STATUSES_BY_VERB.get(verb)
    found = [
        job for job in _jobs(store, typed, statuses_wanted) if statuses_wanted is None or job.status in statuses_wanted
    ]
    short = [job.job_id[:ID_PREFIX_SHOWN] for job in found]
    for job in found:
        shown = job.job_id[:ID_PREFIX_SHOWN]
        whole = short.count(shown) > 1 or not shown.startswith(typed)
        yield (job.job_id if whole else shown), f"{job.status}  {first_line(job.prompt[:200])[:60]}"


def _jobs(store: Store, typed: str, statuses_wanted: frozenset[Status] | None) -> Iterator[Job]:
    if not typed:
        yield from islice(store.select(Query(statuses=statuses_wanted)), MAX_CANDIDATES)
        return
    if not is_job_id(typed):
        return
    for job_id in store.ids_with_prefix(typed, MAX_CANDIDATES):
        try:
            yield store.get(job_id)
        except MamError:
            continue


def labels(store_options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Labels of open jobs, then of the latest ended jobs."""
    store = _store(store_options)
    if store is None:
        return
    counts: dict[str, int] = {}
    for statuses_, most in ((OPEN, LABELS_FROM), (frozenset(Status) - OPEN, MAX_CANDIDATES)):
        for job in islice(store.select(Query(statuses=statuses_)), most):
            counts[job.agent_session] = counts.get(job.agent_session, 0) + (job.status in OPEN)
    for label, number in counts.items():
        yield label, f"{number} open" if number else ""


def choices_for(option: str) -> tuple[str, ...]:
    """The values of an option that has a fixed set of them."""
    from mam.jobs.record import CHOICES

    return CHOICES.get(option.lstrip("-").replace("-", "_"), ())


def agents() -> Iterator[tuple[str, str]]:
    from mam.work.adapters import known_agents

    return ((name, "") for name in known_agents(load_config()))


def events() -> Iterator[tuple[str, str]]:
    from mam.events.event import EVENTS

    return ((event, "") for event in EVENTS)


def settings() -> Iterator[tuple[str, str]]:
    from mam.config.keys import all_current

    return ((one.key.name, one.key.setting.meaning) for one in all_current())


def sessions() -> Iterator[tuple[str, str]]:
    from mam.agents.open_directory import open_directory

    for lookup in open_directory().read_all():
        if lookup.record is not None:
            yield lookup.record.agent_name, lookup.agent_id


def _store(store_options: Mapping[str, str]) -> Store | None:
    """The store of the command line; None if it does not exist or cannot be opened quickly."""
    from mam.location.stores import locate, open_store

    config = load_config().replace(lock_wait_seconds=WAIT_SECONDS)
    try:
        located = locate(store_options.get("--store"), store_options.get("--registry-dir"), config)
        return None if located.exists is False else open_store(located, config)
    except MamError:
        return None
