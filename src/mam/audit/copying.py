"""From a batch of journal entries to lines in the histories; for the holder of the log's lock."""

from __future__ import annotations

import errno

from mam.audit.cursor import Cursor
from mam.audit.fetching import Batch, copied_lines
from mam.audit.writing import Folder, entry_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.stores.port import Entry

BEHIND_LIMIT = 32
"""Jobs that may be left behind; with more of them it is the log that is broken."""

_OF_ONE_JOB = frozenset(
    {errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.EEXIST, errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENXIO,
     errno.EFBIG}
)  # fmt: skip
"""Errors that say something about one job's directory and nothing about the disk."""


def copy(root: int, batch: Batch, complain: Callable[[OSError], None]) -> None:
    """Copies what nobody else has copied since the batch was read."""
    with Cursor(root, batch.journal_id) as cursor:
        if cursor.number < batch.after:
            return  # the cursor was lost meanwhile; the next act begins where it is now
        mended = [job_id for job_id in batch.mended if job_id in cursor.behind]
        for job_id in mended:
            place = cursor.behind.pop(job_id)
            for entry in batch.mended[job_id]:
                _copy_or_leave(root, batch.journal_id, entry, cursor, place, complain)
        place, number = cursor.place, cursor.number
        for entry in batch.entries:
            if entry.number > number:
                _copy_or_leave(root, batch.journal_id, entry, cursor, cursor.place, complain)
                place, number = entry.cursor, entry.number
        if mended or number > cursor.number:
            cursor.save(place, number)


def _copy_or_leave(
    root: int, journal_id: str, entry: Entry, cursor: Cursor, place: str | None, complain: Callable[[OSError], None]
) -> None:
    """One job's broken directory must not keep the others' history waiting; `place` is where its gap begins."""
    if entry.job_id in cursor.behind:
        return
    try:
        _copy_entry(root, journal_id, entry)
    except OSError as error:
        if error.errno not in _OF_ONE_JOB or len(cursor.behind) >= BEHIND_LIMIT:
            raise
        cursor.behind[entry.job_id] = place
        complain(error)


def _copy_entry(root: int, journal_id: str, entry: Entry) -> None:
    """The entry's lines behind those that are there; record and status beside them."""
    lines = copied_lines(entry)
    if not lines:
        return
    with Folder(root, entry.job_id) as folder:
        fields = entry.fields or {}
        if "prompt" in fields and any(line["event"] == "registered" for _, line in lines):
            folder.write_meta_once(fields)
        last = folder.last_mirrored(journal_id)
        for index, line in lines:
            if (entry.number, index) > last:
                folder.append({**line, "entry": entry_name(journal_id, entry.number, index)})
        # An entry that was here already may lack its status; one with newer lines behind it must not bring it back.
        if entry.number >= last[0]:
            _write_status(folder, entry)


def _write_status(folder: Folder, entry: Entry) -> None:
    """As the lines tell it: the fields of an adopted record are those of a later moment."""
    for line in reversed(entry.lines):
        status = line.get({"status_changed": "to", "registered": "status"}.get(line["event"], ""))
        if status is not None:
            folder.write_status(entry.job_id, status, line["timestamp"])
            return
