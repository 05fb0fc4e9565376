"""A missing, damaged or foreign index is made anew: numbers from the journal, everything else from the files."""

from __future__ import annotations

import os

from mam.errors import StoreDamaged
from mam.stores.files.book import Book
from mam.stores.files.directory import UNKNOWN
from mam.stores.files.foreign import restore_known
from mam.stores.files.index import Applied
from mam.stores.files.journal import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def index_from_records(book: Book) -> Applied:
    """Only the last act can be unfinished, since every holder first finishes the one before it; so the journal counts
    as applied up to the last frame, which is then carried out again.
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
        book.note_problem(os.path.basename(str(damage.facts["file"])), problem, (-1, -1, -1))
    return book.applied


def _count(numbers: dict[str, int], entry: dict[str, Any]) -> None:
    if entry["fields"] is None:
        numbers.pop(entry["job_id"], None)
    elif "number" in entry["fields"]:
        numbers[entry["job_id"]] = int(entry["fields"]["number"])
