"""How a files store takes a new job, under the lock that the book holds."""

from __future__ import annotations

import os

from mam.errors import AlreadyRegistered
from mam.jobs import acts
from mam.stores.common import checked_needed
from mam.stores.files.book import ARCHIVE
from mam.stores.files.drafts import Step
from mam.stores.port import Registration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.jobs.record import Job
    from mam.stores.files.book import Book


def register(book: Book, draft: Job) -> Registration:
    known = (draft.key is not None and book.index.with_key(draft.key)) or (
        draft.retry_of is not None and book.index.retry_of(draft.retry_of)
    )
    if known:
        return Registration(job=book.load(known), created=False)
    archived = _archived_before(book, draft)
    if archived is not None:
        return Registration(job=archived, created=False)
    if book.records.exists(draft.job_id):
        raise AlreadyRegistered(job=draft.job_id)
    needed = checked_needed(draft, book.needed(draft), book.directory.path, book.newest) if draft.after else {}
    change = acts.register(draft, book.applied.next_number, book.clock.now(), needed)
    book.commit([Step(before=None, change=change)])
    return Registration(job=change.job, created=True)


def register_all(book: Book, drafts: Sequence[Job]) -> list[Job]:
    """One frame of the journal for all of them, so that they are there together or not at all."""
    ids: set[str] = set()
    for draft in drafts:
        if draft.job_id in ids or book.records.exists(draft.job_id):
            raise AlreadyRegistered(job=draft.job_id)
        ids.add(draft.job_id)
        _archived_before(book, draft)
    first, moment = book.applied.next_number, book.clock.now()
    changes = [acts.register(draft, number, moment) for number, draft in enumerate(drafts, first)]
    book.commit([Step(before=None, change=change) for change in changes])
    return [change.job for change in changes]


def _archived_before(book: Book, draft: Job) -> Job | None:
    """The one that was registered in its place and is archived by now."""
    if not os.path.exists(os.path.join(book.home, ARCHIVE)):
        return None
    with book.archive() as archive:
        if archive.has(draft.job_id):
            raise AlreadyRegistered(job=draft.job_id)
        kept = archive.with_key(draft.key) if draft.key is not None else None
        if kept is None and draft.retry_of is not None:
            kept = archive.retry_of(draft.retry_of)
    return None if kept is None else kept.job
