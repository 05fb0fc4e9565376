"""The archive of a files store of mam 0.1.0."""

from __future__ import annotations

import os

import apsw

from mam.jobs.record import parse_job
from mam.stores.port import JobWithEvents
from mam.util.strict_json import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def read_archive(path: str) -> Iterator[JobWithEvents]:
    if not os.path.exists(path):
        return
    database = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'archive'").fetchall():
            return
        for record, events in database.execute("SELECT record, events FROM archive ORDER BY number"):
            yield JobWithEvents(
                job=parse_job(strict_json(str(record).encode()), path), events=strict_json(str(events).encode())
            )
    finally:
        database.close()
