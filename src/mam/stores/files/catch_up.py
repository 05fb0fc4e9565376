"""What the holder of the lock does first: carry out what the last one committed, and see what others did.

Killed after the commit, an act is in the journal and nowhere else; it is carried out here. An index that is missing
or belongs to another journal is made anew from the records.
"""

from __future__ import annotations

import os

from mam.errors import BadRecord, StoreDamaged
from mam.jobs.record import parse_job
from mam.stores.files.book import Book
from mam.stores.files.directory import UNKNOWN
from mam.stores.files.event_log import append_events
from mam.stores.files.foreign import look_around, restore_known
from mam.stores.files.index import Applied
from mam.stores.files.journal import ACTIVE, Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Frames = list[tuple[list[dict[str, Any]], Place]]


def catch_up(book: Book, *, thoroughly: bool = False) -> None:
    """Makes journal, records and index agree. `thoroughly` also finds edits that left no trace in the directory."""
    book.journal.refresh(book.clock.new_id())
    applied = book.index.applied()
    if applied is None or applied.journal_id != book.journal.journal_id:
        applied = _begin_anew(book)
    book.applied = applied
    if applied.place != book.journal.end():
        _replay(book)
    book.directory.expect(book.applied.directory_ns)
    if thoroughly or book.applied.directory_ns != book.directory.modified_ns():
        look_around(book)


def _replay(book: Book) -> None:
    """Carries out what the journal says and the index has not heard of. Doing it twice changes nothing."""
    frames = _unapplied(book)
    for entries, place in frames:
        book.directory.expect(UNKNOWN)
        book.index.begin()
        for entry in entries:
            _apply(book, entry)
        book.directory.synced()
        numbers = [int(entry["fields"].get("number", 0)) for entry in entries if entry["fields"]]
        book.applied = book.applied.replace(
            place=place,
            next_entry=int(entries[-1]["number"]) + 1,
            next_number=max(book.applied.next_number, *(number + 1 for number in numbers), 0),
            directory_ns=UNKNOWN,
        )
        book.index.commit(book.applied)


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


def _apply(book: Book, entry: dict[str, Any]) -> None:
    job_id, fields = entry["job_id"], entry["fields"]
    if fields is None:
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
    if job.to_json() == known:
        stamp = book.records.stamp(job_id)
    else:
        if secrets:
            book.secrets.keep(job_id, secrets)
        prepared = book.records.prepare(job)
        book.records.put(prepared)
        stamp = prepared.stamp
    append_events(book.directory, job_id, entry["lines"])
    book.index.put(job, stamp)


def _begin_anew(book: Book) -> Applied:
    """An empty index: numbers come from the journal, everything else from the files.

    Only the last act can be unfinished, since every holder first finishes the one before it; so the journal counts as
    applied up to the last frame, which is then carried out again.
    """
    numbers: dict[str, int] = {}
    damages: list[StoreDamaged] = []
    last_entry = 0
    place = before_last = Place(first=book.journal.segments()[0][0], offset=0)
    for entries, behind in book.journal.read(place, book.journal.end(), damages.append):
        before_last, place = place, behind
        last_entry = int(entries[-1]["number"])
        for entry in entries:
            _count(numbers, entry)
    book.index.clear()
    book.applied = Applied(
        journal_id=book.journal.journal_id,
        place=place if damages else before_last,
        next_entry=last_entry + 1,
        next_number=max(numbers.values(), default=0) + 1,
        directory_ns=UNKNOWN,
    )
    restore_known(book, numbers)
    for damage in damages:
        problem = (
            f"byte {damage.facts['offset']}: {damage.facts['problem']}; the records are whole, some history is not"
        )
        book.note_problem(os.path.basename(str(damage.facts["file"])), problem, (0, 0, 0))
    return book.applied


def _count(numbers: dict[str, int], entry: dict[str, Any]) -> None:
    if entry["fields"] is None:
        numbers.pop(entry["job_id"], None)
    elif "number" in entry["fields"]:
        numbers[entry["job_id"]] = int(entry["fields"]["number"])


def _raise(damage: StoreDamaged) -> None:
    raise damage
