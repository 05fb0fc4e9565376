"""Moving ended jobs from the directory into the archive, and jobs of another registry into the directory.

A move is written in this order, and may be cut off anywhere:

1. the whole job in the archive, synced             (cut off here: it is in both places, and its files count)
2. one frame in the journal, synced                 (THE COMMIT: the job has left the registry)
3. event log and record removed, the directory synced
4. the index

Whoever comes next and finds the journal ahead of the index repeats step 3 and 4 (replay.py).
"""

from __future__ import annotations

from mam.errors import BadRecord, UnknownJob
from mam.jobs.change import Change
from mam.stores.common import archived_line, lines_of
from mam.stores.files.archive import Archive
from mam.stores.files.drafts import Step
from mam.stores.files.event_damage import sound_events
from mam.stores.files.records import file_name
from mam.stores.port import Kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.jobs.change import Line
    from mam.jobs.record import Job
    from mam.stores.files.book import Book


def archive(book: Book, job_ids: Sequence[str]) -> list[str]:
    newest = book.index.highest_number()
    found = [job for job_id in job_ids if (job := _loaded(book, job_id)) is not None]
    moved = [job for job in found if job.status.ended and job.number < newest]
    gone = {job.job_id for job in moved}
    if moved:
        kept = [Kept(job=job, events=sound_events(book, job.job_id)) for job in moved]
        with Archive(book.home) as place:
            place.put(kept)
        moment = book.clock.now()
        ids = list(gone)
        book.remove({job_id: archived_line(job_id, moment) for job_id in ids}, lambda: remove_files(book, ids))
    held = {job.job_id for job in found} - gone
    with Archive(book.home) as place:
        return [job_id for job_id in job_ids if job_id in gone or (job_id not in held and place.has(job_id))]


def remove_files(book: Book, job_ids: Sequence[str]) -> None:
    """Doing it twice changes nothing."""
    for job_id in job_ids:
        book.records.discard(f"{job_id}.events.log")
        book.records.discard(file_name(job_id))


def was_archived(lines: Sequence[Line]) -> bool:
    return any(line["event"] == "archived" for line in lines)


def take_in(book: Book, batch: Sequence[Kept], *, archived: bool) -> None:
    if archived:
        with Archive(book.home) as place:
            place.put(batch)
        return
    moment = book.clock.now()
    steps = [
        Step(before=_loaded(book, kept.job.job_id), change=Change(job=kept.job, lines=lines_of(kept, moment)))
        for kept in batch
    ]
    book.commit(steps)


def _loaded(book: Book, job_id: str) -> Job | None:
    try:
        return book.load(job_id)
    except (BadRecord, UnknownJob):
        return None
