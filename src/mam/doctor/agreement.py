"""Whether journal, records and index say the same about every job.

The journal is folded from its beginning. Only what decides is kept of each job, so that a million of them fit. Others
may write meanwhile: what differs is looked at again, and counts only if nothing came in between.
"""

from __future__ import annotations

from sys import intern

from mam.doctor.finding import count, fine, wrong
from mam.doctor.index import make_anew
from mam.errors import MamError
from mam.stores.port import Query
from mam.workspace import FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from mam.doctor.finding import Finding
    from mam.doctor.patient import Patient
    from mam.stores.port import Store

    Told = dict[str, tuple[Any, ...]]
    """By job, what the journal says of the DECISIVE fields."""

DECISIVE = ("status", "attempt", "last_seq", "number", "losses", "retries", "agent_session")
UNTOLD = (...,) * len(DECISIVE)
LOOKS = 5
PAGE = 500


def look(patient: Patient) -> Iterator[Finding]:
    store = patient.opened()
    if store is None:
        return
    told: Told = {}
    cursor = _fold(store, None, told, patient.saw)
    differing, jobs = _differing(store, told, patient.saw)
    for _ in range(LOOKS):
        if not differing or store.end() == cursor:
            break
        cursor = _fold(store, cursor, told, patient.saw)
        differing = {job_id: why for job_id in differing if (why := _difference(store, job_id, told)) is not None}
    strays = _index(store) if patient.kind == FILES else []
    for job_id, why in list(differing.items())[:10]:
        yield wrong(
            f"job {job_id}: {why}",
            "journal and records are written together; one of them was changed or lost since",
            f"mam logs {job_id[:8]}",
        )
    if strays:
        more = f", and {count(len(strays) - 1, 'other')} like it" if len(strays) > 1 else ""
        yield wrong(
            f"{strays[0]}{more}",
            "claims are chosen by the index; it is a cache, and made anew from journal and records",
            fix=lambda: make_anew(patient),
        )
    if not differing and not strays:
        yield fine(
            f"journal and records agree about {count(jobs, 'job')}{', and so does the index' * (patient.kind == FILES)}"
        )


def _fold(store: Store, cursor: str | None, told: Told, saw: Callable[[str], None]) -> str:
    for entry in store.entries(cursor):
        saw("entries")
        cursor = entry.cursor
        if entry.fields is None:
            told.pop(entry.job_id, None)
            continue
        known = told.get(entry.job_id, UNTOLD)
        told[entry.job_id] = tuple(
            _shared(entry.fields.get(name, before)) for name, before in zip(DECISIVE, known, strict=True)
        )
    return cursor if cursor is not None else store.end()


def _shared(value: Any) -> Any:
    """A million times the same word is kept once."""
    return intern(value) if isinstance(value, str) else value


def _differing(store: Store, told: Told, saw: Callable[[str], None]) -> tuple[dict[str, str], int]:
    """What agrees is forgotten; in the end `told` has what does not, and what has no record."""
    differing, jobs = {}, 0
    for job in store.select(Query()):
        saw("records")
        jobs += 1
        why = _compared(told.get(job.job_id), job.to_json())
        if why is not None:
            differing[job.job_id] = why
        else:
            del told[job.job_id]
    unreadable = {problem.file.removesuffix(".json") for problem in store.problems()}
    for job_id in told:
        if job_id not in differing and job_id not in unreadable:
            differing[job_id] = "the journal knows it, and its record is gone"
    return differing, jobs


def _difference(store: Store, job_id: str, told: Told) -> str | None:
    try:
        return _compared(told.get(job_id), store.get(job_id).to_json())
    except MamError as error:
        return str(error) if job_id in told else None


def _compared(told: tuple[Any, ...] | None, record: dict[str, Any]) -> str | None:
    if told is None:
        return "its record is there, and the journal does not know it"
    for name, value in zip(DECISIVE, told, strict=True):
        if value is not ... and record[name] != value:
            return f"the journal says {name} {value}, the record {record[name]}"
    return None


def _index(store: Store) -> list[str]:
    from mam.stores.files.store import FilesStore

    assert isinstance(store, FilesStore)
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        problems, after = store.compare_index(after, PAGE)
        found += problems
    return found
