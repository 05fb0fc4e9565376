"""Carrying out what the journal says and the index has not heard of.

Killed after the commit, an act is in the journal and nowhere else; the next holder of the lock carries it out here.
"""

from __future__ import annotations

import os

from mam.errors import BadRecord, StoreDamaged
from mam.jobs.record import parse_job
from mam.stores.files.book import Book
from mam.stores.files.directory import UNKNOWN
from mam.stores.files.index import NO_STAMP
from mam.stores.files.journal import ACTIVE, Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.jobs.change import Line
    from mam.jobs.record import Json

    Frames = list[tuple[list[dict[str, Any]], Place]]
    Told = tuple[Json | None, list[Line]]


def replay(book: Book) -> None:
    """Doing it twice changes nothing. Each record is written once, as the last frame leaves it, and never goes back."""
    frames = _unapplied(book)
    if not frames:
        return
    told = _folded(frames)
    book.directory.expect(UNKNOWN)
    book.index.begin()
    for job_id, (fields, lines) in told.items():
        _apply(book, job_id, fields, lines)
    book.directory.synced()
    numbers = [int(fields.get("number", 0)) for fields, _lines in told.values() if fields]
    entries, place = frames[-1]
    book.applied = book.applied.replace(
        place=place,
        next_entry=int(entries[-1]["number"]) + 1,
        next_number=max(book.applied.next_number, *(number + 1 for number in numbers), 0),
        directory_ns=UNKNOWN,
    )
    book.index.commit(book.applied)


def go_on_after_loss(book: Book) -> None:
    """The journal is shorter than what was applied of it: somebody cut it, and with it some of the history."""
    lost = book.applied.place.offset - book.journal.end().offset
    book.journal.go_on_after_loss(book.applied.next_entry)
    book.applied = book.applied.replace(place=book.journal.end())
    book.note_problem(ACTIVE, f"{lost} bytes were cut off; the records are whole, some history is not", NO_STAMP)


def _folded(frames: Frames) -> dict[str, Told]:
    told: dict[str, Told] = {}
    for entries, _place in frames:
        for entry in entries:
            before, lines = told.get(entry["job_id"], ({}, []))
            fields = None if entry["fields"] is None else {**(before or {}), **entry["fields"]}
            told[entry["job_id"]] = (fields, lines + entry["lines"])
    return told


def _unapplied(book: Book) -> Frames:
    frames: Frames = []
    try:
        for found in book.journal.read(book.applied.place, book.journal.end(), _raise):
            frames.append(found)
    except StoreDamaged as damage:
        if os.path.basename(str(damage.facts["file"])) != ACTIVE:
            raise
        book.journal.cut_torn_tail(Place(first=book.journal.first, offset=int(str(damage.facts["offset"]))))
    return frames


def _apply(book: Book, job_id: str, fields: Json | None, lines: list[Line]) -> None:
    if fields is None:
        from mam.stores.files.archiving import remove_files, was_archived

        if was_archived(lines):
            remove_files(book, [job_id])
        book.index.remove([job_id])
        return
    try:
        current = book.records.read(job_id)
        known, secrets = current.job.to_json(), current.secrets
    except FileNotFoundError:
        known, secrets = {}, {}
    except BadRecord as bad:
        book.index.mark_bad(job_id, str(bad.facts["problem"]), book.records.stamp(job_id))
        return
    if not known and "prompt" not in fields:
        return  # removed by somebody else meanwhile; the look around will say so
    job = parse_job({**known, **fields}, job_id)
    written = job.to_json()
    if written == known:
        stamp = book.records.stamp(job_id)
    else:
        if secrets:
            book.keep_secrets(job_id, secrets)
        stamp = book.records.put(book.records.prepare(job_id, written))
    problem = book.append_events(job_id, lines)
    book.index.put(job, written, stamp)
    if problem:
        book.index.note_problem(f"{job_id}.events.log", problem, NO_STAMP)


def _raise(damage: StoreDamaged) -> None:
    raise damage
