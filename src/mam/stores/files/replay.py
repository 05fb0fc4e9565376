"""Carrying out what the journal says and the index has not heard of.

Killed after the commit, an act is in the journal and nowhere else; the next holder of the lock carries it out here.
"""

from __future__ import annotations

import os

from mam.errors import BadRecord, StoreDamaged
from mam.jobs.record import parse_job
from mam.stores.files.book import Book
from mam.stores.files.directory import UNKNOWN
from mam.stores.files.journal import ACTIVE, Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Frames = list[tuple[list[dict[str, Any]], Place]]


def replay(book: Book) -> None:
    """Doing it twice changes nothing."""
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
    written = job.to_json()
    if written == known:
        stamp = book.records.stamp(job_id)
    else:
        if secrets:
            book.keep_secrets(job_id, secrets)
        prepared = book.records.prepare(job_id, written)
        book.records.put(prepared)
        stamp = prepared.stamp
    book.append_events(job_id, entry["lines"])
    book.index.put(job, written, stamp)


def _raise(damage: StoreDamaged) -> None:
    raise damage
