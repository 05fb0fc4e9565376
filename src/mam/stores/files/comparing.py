"""Whether the index says of each job what its record says; for the holder of the lock."""

from __future__ import annotations

import json

from mam.errors import BadRecord
from mam.stores.files.index import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.files.book import Book

LEFT_OUT = "updated_at"
"""Somebody else's write that changed nothing but this is no change, and is not taken over."""


def compared(book: Book, after: str, limit: int) -> tuple[list[str], str | None]:
    rows = book.index.states(after, limit)
    found = []
    for job_id, number, state in rows:
        try:
            job = book.records.read(job_id).job
        except (FileNotFoundError, BadRecord):
            continue  # gone or broken since: what the next look around finds
        there = {**job.to_json(), "prompt": digest(job.prompt), "number": number}
        known = {**json.loads(state), "number": number}
        names = (there.keys() | known.keys()) - {LEFT_OUT}
        differing = sorted(name for name in names if there.get(name) != known.get(name))
        if differing:
            found.append(f"job {job_id}: the index and the record differ in {', '.join(differing)}")
    return found, rows[-1][0] if len(rows) == limit else None
