"""Which job of a files store a claim takes, under the lock that the book holds."""

from __future__ import annotations

from mam.errors import BadRecord, UnknownJob
from mam.jobs.claiming import claimable
from mam.jobs.pause import passed_over, tried_first
from mam.stores.common import claimed
from mam.stores.files.drafts import Step
from mam.stores.files.pauses import read_pauses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.clock import Moment
    from mam.jobs.record import Job
    from mam.stores.files.book import Book
    from mam.stores.port import Request


def claim(book: Book, request: Request) -> Job | None:
    moment = book.clock.now()
    book.settle(moment)
    pauses = read_pauses(book.home)
    if request.job_id is None:
        for job_id in tried_first(pauses, request.label, moment):
            skipped = passed_over(pauses, request.label, moment, job_id)
            if (job := _take(book, request.replace(job_id=job_id), skipped, moment)) is not None:
                return job
    return _take(book, request, passed_over(pauses, request.label, moment, request.job_id), moment)


def _take(book: Book, request: Request, skipped: frozenset[str] | None, moment: Moment) -> Job | None:
    if skipped is None:
        return None
    while (job_id := _candidate(book, request, skipped)) is not None:
        try:
            job = book.load(job_id)
        except (BadRecord, UnknownJob):
            continue  # noted by load, so it is not the first any more
        if not claimable(job, request.label) or job.agent in skipped:
            if request.job_id is not None:
                return None
            continue  # somebody else's edit, which load has taken over
        change = claimed(job, request, moment)
        book.commit([Step(before=job, change=change)])
        return change.job
    return None


def _candidate(book: Book, request: Request, skipped: frozenset[str]) -> str | None:
    if request.job_id is None:
        return book.index.first_pending(request.label, skipped)
    return request.job_id if book.index.is_free(request.job_id) else None
