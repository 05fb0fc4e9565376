"""Whether journal, records and index say the same about every job.

The journal is folded from its beginning. Only what decides is kept of each job, so that a million of them fit. Others
may write meanwhile: what differs is looked at again, and counts only if nothing came in between.
"""

from __future__ import annotations

from mam.doctor.finding import count, fine, wrong
from mam.errors import MamError
from mam.stores.port import Query
from mam.workspace import FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.doctor.finding import Finding
    from mam.doctor.patient import Patient
    from mam.stores.port import Store

    Told = dict[str, dict[str, Any] | None]

DECISIVE = ("status", "attempt", "last_seq", "number", "losses", "retries", "agent_session")
LOOKS = 5
PAGE = 500


def look(patient: Patient) -> Iterator[Finding]:
    store = patient.opened()
    if store is None:
        return
    told: Told = {}
    cursor = _fold(store, None, told)
    differing, jobs = _differing(store, told)
    for _ in range(LOOKS):
        if not differing or store.end() == cursor:
            break
        cursor = _fold(store, cursor, told)
        differing = {job_id: why for job_id in differing if (why := _difference(store, job_id, told)) is not None}
    strays = _index(store) if patient.kind == FILES else []
    for job_id, why in list(differing.items())[:10]:
        yield wrong(
            f"job {job_id}: {why}",
            "journal and records are written together; one of them was changed or lost since",
            f"mam logs {job_id[:8]}",
        )
    for problem in strays[:10]:
        yield wrong(problem, "a claim is chosen by the index", "rm the index: .store/index.sqlite*; it is made anew")
    if not differing and not strays:
        yield fine(
            f"journal and records agree about {count(jobs, 'job')}{', and so does the index' * (patient.kind == FILES)}"
        )


def _fold(store: Store, cursor: str | None, told: Told) -> str:
    for entry in store.entries(cursor):
        cursor = entry.cursor
        if entry.fields is None:
            told[entry.job_id] = None
            continue
        known = told.get(entry.job_id) or {}
        known.update((name, entry.fields[name]) for name in DECISIVE if name in entry.fields)
        told[entry.job_id] = known
    return cursor if cursor is not None else store.end()


def _differing(store: Store, told: Told) -> tuple[dict[str, str], int]:
    differing, seen = {}, set()
    for job in store.select(Query()):
        seen.add(job.job_id)
        why = _compared(told.get(job.job_id), job.to_json())
        if why is not None:
            differing[job.job_id] = why
    unreadable = {problem.file.removesuffix(".json") for problem in store.problems()}
    for job_id, fields in told.items():
        if fields is not None and job_id not in seen and job_id not in unreadable:
            differing[job_id] = "the journal knows it, and its record is gone"
    return differing, len(seen)


def _difference(store: Store, job_id: str, told: Told) -> str | None:
    try:
        return _compared(told.get(job_id), store.get(job_id).to_json())
    except MamError as error:
        return None if told.get(job_id) is None else str(error)


def _compared(told: dict[str, Any] | None, record: dict[str, Any]) -> str | None:
    if told is None:
        return "its record is there, and the journal does not know it"
    for name, value in told.items():
        if record[name] != value:
            return f"the journal says {name} {value!r}, the record {record[name]!r}"
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
