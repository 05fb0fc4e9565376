"""Event logs that are not what the journal told: said by file and line, made anew from the journal, the old one kept.

A log is a copy, and has no checksums. Whoever reads one sees whether all numbers up to the job's last one are there;
whether the words are right too is seen by `differing`, which compares every line with the journal.
"""

from __future__ import annotations

import os
import stat
from zlib import crc32

from mam.stores.beside import make_directories, replace_bytes
from mam.stores.common import event_of
from mam.stores.files.event_log import parse_event, read_events
from mam.stores.files.index import NO_STAMP
from mam.stores.files.journal import QUARANTINE, parse_place
from mam.stores.port import Problem
from mam.telling import tell
from mam.writing import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.errors import StoreDamaged
    from mam.jobs.change import Line
    from mam.stores.files.book import Book

BEGINNING = "0:0"
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def sound_events(book: Book, job_id: str) -> list[Line]:
    """The events of a job, all of them if the log or the journal has them."""
    found = read_events(book.directory.descriptor, job_id)
    row = book.index.row(job_id)
    if row is None or is_complete(found, row.state["last_seq"]):
        return found
    return mend(book, job_id)


def is_complete(events: list[Line], last_seq: int) -> bool:
    """Each number once, from the first to the last one that was given out."""
    due = 1
    for event in events:
        if event["seq"] != due:
            return False
        due = int(event.get("upto", due)) + 1
    return due == last_seq + 1


def mend(book: Book, job_id: str) -> list[Line]:
    """Makes the log anew. If the journal has lost events too, what is there stays as it is."""
    row = book.index.row(job_id)
    told = _told(book, job_id).get(job_id, {})
    data = _content(book, job_id)
    if data is not None:
        for event in map(parse_event, data.splitlines()):
            if event is not None:
                told.setdefault(int(event["seq"]), event)
    events = [told[number] for number in sorted(told)]
    name = f"{job_id}.events.log"
    problem = damage_of(data or b"", events)
    if data is None or row is None or not is_complete(events, row.state["last_seq"]):
        _say(book, name, f"{problem}; the journal does not have all of its events either", mended=False)
        return events
    aside = _replaced(book, job_id, data, events)
    _say(book, name, f"{problem}; made anew from the journal, what was there is in {aside}", mended=True)
    return events


def differing(book: Book) -> list[Problem]:
    """Every log that is not what the journal told, with the first line that is not."""
    found = []
    for job_id, told in _told(book, None).items():
        data = _content(book, job_id)
        if data is None or book.index.row(job_id) is None:
            continue
        events = [told[number] for number in sorted(told)]
        logged = [event for event in map(parse_event, data.splitlines()) if event is not None]
        if sorted(logged, key=lambda event: int(event["seq"])) != events:
            found.append(Problem(file=f"{job_id}.events.log", problem=damage_of(data, events)))
    return found


def damage_of(data: bytes, events: list[Line]) -> str:
    """Where a log begins to differ from what it should hold."""
    lines = data.splitlines()
    for number, line in enumerate(lines, start=1):
        event = parse_event(line)
        if event is None:
            return f"line {number} cannot be read"
        if number > len(events) or event != events[number - 1]:
            return f"line {number} is not what the journal told"
    return f"it ends with line {len(lines)} of {len(events)}" if lines else "it is empty or gone"


def _told(book: Book, wanted: str | None) -> dict[str, dict[int, Line]]:
    """The events of one job, or of all, by their numbers."""
    told: dict[str, dict[int, Line]] = {}
    for entry in _entries(book):
        job_id = entry["job_id"]
        if wanted in (None, job_id):
            events = told.setdefault(job_id, {})
            events.update((int(event["seq"]), event) for event in map(event_of, entry["lines"]) if event is not None)
    return told


def _entries(book: Book) -> Iterator[Line]:
    damages: list[StoreDamaged] = []  # `problems` tells of the journal's own
    for frame, _behind in book.journal.read(parse_place(BEGINNING), book.journal.end(), damages.append):
        yield from frame


def _content(book: Book, job_id: str) -> bytes | None:
    """What the log holds; nothing if it is gone, None for what mam would not write to either."""
    try:
        descriptor = os.open(f"{job_id}.events.log", _READ, dir_fd=book.directory.descriptor)
    except FileNotFoundError:
        return b""
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _replaced(book: Book, job_id: str, data: bytes, events: list[Line]) -> str:
    """The new log in the place of the old one, of which a copy is on the disk before; where that is."""
    name = f"{job_id}.events.log"
    aside = os.path.join(book.home, QUARANTINE, f"{name}-{crc32(data):08x}")
    make_directories(os.path.dirname(aside))
    replace_bytes(aside, data)
    fresh = os.path.join(book.home, "events.new")
    replace_bytes(fresh, b"".join(to_bytes(event) + b"\n" for event in events))
    with book.directory:
        os.rename(fresh, name, dst_dir_fd=book.directory.descriptor)
    book.applied = book.applied.replace(directory_ns=book.directory.synced())
    return os.path.join(os.path.basename(book.home), QUARANTINE, os.path.basename(aside))


def _say(book: Book, name: str, problem: str, *, mended: bool) -> None:
    from mam.stores.files.book import MENDED

    tell("mam.store", f"{name}: {problem}")
    book.note_problem(name, problem, MENDED if mended else NO_STAMP)
