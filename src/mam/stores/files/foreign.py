"""What somebody else did in the directory: records that came, went or were changed, and files that are none."""

from __future__ import annotations

import os
import re

from mam.clock import parse_time
from mam.errors import BadRecord
from mam.jobs.adopt import adopt_new
from mam.jobs.rules import is_job_id
from mam.jobs.status import PENDING, RUNNING
from mam.stores.files.book import MENDED, Book
from mam.stores.files.directory import UNKNOWN
from mam.stores.files.drafts import Step
from mam.stores.files.records import stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.stores.files.index import Stamp
    from mam.stores.files.records import Found

CHUNK = 256
"""Records adopted in one act: a large old registry is taken over in steps that each are whole."""

LEFTOVER = re.compile(r"\.[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.[0-9a-f]{12}\.tmp")
"""As `Records.prepare` names them; other programs' temporary files are their own business."""


def look_around(book: Book) -> None:
    """Compares every record file with what the index knows."""
    if book.directory.expected() == UNKNOWN:
        book.directory.stamp()
    there = _files(book)
    known = {job_id: (inode, modified, size) for job_id, inode, modified, size in book.index.stamps()}
    problems = {problem.file: stamp for problem, stamp in book.index.problems()}
    fresh = {job_id: stamp for job_id, stamp in there.items() if problems.get(f"{job_id}.json") != stamp}
    if any(known.get(job_id) != stamp for job_id, stamp in fresh.items()) and book.tracked() is None:
        book.directory.look_again()  # when git has written which of these came with the repository
        return
    _welcome(book, [job_id for job_id in fresh if job_id not in known])
    for job_id, stamp in fresh.items():
        if job_id in known and known[job_id] != stamp:
            _reload(book, job_id)
        elif job_id in known and problems.get(f"{job_id}.json") not in (None, MENDED):
            book.load(job_id)  # it is again as mam left it
    gone = [job_id for job_id in known if job_id not in there]
    if gone:
        book.gone(gone)
    book.looked_around()


def _files(book: Book) -> dict[str, Stamp]:
    """Job id -> stamp of every record file; leftovers of killed writers are swept, odd files are noted."""
    there: dict[str, Stamp] = {}
    leftovers, names = [], set()
    with os.scandir(book.directory.descriptor) as entries:
        for entry in entries:
            name = entry.name
            if LEFTOVER.fullmatch(name):
                leftovers.append(name)
            elif name.endswith(".json") and not name.startswith("."):
                try:
                    stamp = stamp_of(entry.stat(follow_symlinks=False))
                except FileNotFoundError:
                    continue  # gone again
                names.add(name)
                if is_job_id(name[:-5]):
                    there[name[:-5]] = stamp
                else:
                    book.note_problem(name, "its name is not a job id", stamp)
    for name in leftovers:
        # Only a holder of the lock makes these, and that is us: whoever made this one is dead.
        book.records.discard(name)
    for problem, _stamp in book.index.problems():
        if problem.file.endswith(".json") and problem.file not in names:
            book.index.forget_problem(problem.file)
    return there


def _welcome(book: Book, new: list[str]) -> None:
    """Records that nobody has numbered yet, in the order in which they say they were made."""
    strangers = [one for job_id in new if (one := _read(book, job_id)) is not None]
    welcome(book, strangers)


def welcome(book: Book, strangers: list[Found]) -> None:
    strangers = sorted(strangers, key=lambda one: (parse_time(one.job.created_at), one.job.number, one.job.job_id))
    for begin in range(0, len(strangers), CHUNK):
        _adopt(book, strangers[begin : begin + CHUNK])


def _read(book: Book, job_id: str) -> Found | None:
    """None for a file that cannot be read, which is noted, or that is gone again."""
    try:
        found = book.records.read(job_id)
        book.check_not_tracked(job_id)
        return found
    except BadRecord as bad:
        book.note_bad(job_id, bad)
    except FileNotFoundError:
        pass
    return None


def _adopt(book: Book, strangers: list[Found]) -> None:
    moment = book.clock.now()
    steps = []
    for place, found in enumerate(strangers):
        change = adopt_new(_without_rival(book, found.job), book.applied.next_number + place, moment)
        # A record that needs nothing but a number keeps its file as it is; the number is in the journal.
        untouched = change.job.replace(number=found.job.number) == found.job
        steps.append(Step(before=found.job, change=change, stamp=found.stamp if untouched else None))
    book.commit(steps)


def _without_rival(book: Book, job: Job) -> Job:
    """A copy of a running job under the key of the one that runs may wait for its turn."""
    waiting = job.replace(status=PENDING)
    return waiting if job.status is RUNNING and book.rival(waiting) is not None else job


def _reload(book: Book, job_id: str) -> None:
    row, found = book.index.row(job_id), _read(book, job_id)
    if row is not None and found is not None:
        book.adopt(found, row)
