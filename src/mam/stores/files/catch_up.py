"""What the holder of the lock does first: see whether everything agrees. It nearly always does.

What it takes to make it agree (replay.py, foreign.py) is imported only then.
"""

from __future__ import annotations

from mam.stores.files.book import Book


def catch_up(book: Book, *, thoroughly: bool = False) -> None:
    """Makes journal, records and index agree. `thoroughly` also finds edits that left no trace in the directory."""
    book.behind = False
    end = book.journal.refresh(book.clock.new_id)
    if book.is_as_left(end, thoroughly=thoroughly):
        return
    applied = book.index.applied()
    if applied is None or applied.journal_id != book.journal.journal_id:
        from mam.stores.files.rebuild import index_from_records

        applied, end = index_from_records(book), book.journal.end()
    book.applied = applied
    if applied.place.first == end.first and applied.place.offset > end.offset:
        from mam.stores.files.replay import go_on_after_loss

        go_on_after_loss(book)
    elif applied.place != end:
        from mam.stores.files.replay import replay

        replay(book)
    book.directory.expect(book.applied.directory_ns)
    if thoroughly or book.applied.directory_ns != book.directory.modified_ns():
        from mam.stores.files.foreign import look_around

        look_around(book)
