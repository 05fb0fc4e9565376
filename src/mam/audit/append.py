"""Copies a batch of journal entries to the histories of the jobs, under the log's lock."""

from __future__ import annotations

import errno

from mam.audit.cursor import Cursor, is_of_0_1_0
from mam.audit.fetch import lines_to_copy
from mam.audit.files import JobFolder, entry_name, fingerprint
from mam.stores.consumer import position_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.audit.fetch import Batch
    from mam.jobs.change import AuditRecord
    from mam.stores.port import Entry

BEHIND_LIMIT = 32
"""Jobs that may be left behind; with more of them, the whole log is broken."""

_OF_ONE_JOB = frozenset(
    {errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.EEXIST, errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENXIO,
     errno.EFBIG}
)  # fmt: skip
"""Errors of one job's directory, not of the disk."""


_FIRST_EVENTS = {"registered": "status", "migrated": "status"}
"""Events that begin the history of a job, and the field that holds its status."""


def copy(root: int, batch: Batch, complain: Callable[[OSError], None]) -> None:
    """Copies the entries that no other process has copied since the batch was read."""
    with Cursor(root, batch.epoch) as cursor:
        if batch.replaced and cursor.at == batch.seen:
            cursor.start_over()
        elif not batch.continues(cursor.at):
            return  # another process was faster, or the cursor was lost; the next act reads it again
        writer = _Writer(root, batch.epoch, cursor, complain)
        for job_id, entries in batch.mended.items():
            if job_id in cursor.behind:
                gap = cursor.behind.pop(job_id)
                for entry in entries:
                    writer.copy_or_leave(entry, gap, again=True)
        left = [entry for entry in batch.entries if entry.number > cursor.at.number]
        for entry in left:
            writer.copy_or_leave(entry, cursor.at.number, again=cursor.reads_again)
        at = position_after(left[-1], batch.epoch) if left else cursor.at
        cursor.save(at, caught_up=batch.reaches_end)


class _Writer:
    def __init__(self, root: int, journal_id: str, cursor: Cursor, complain: Callable[[OSError], None]) -> None:
        self._root = root
        self._journal_id = journal_id
        self._cursor = cursor
        self._complain = complain
        self._there: dict[str, tuple[set[int], list[int]]] = {}
        """By job: lines of this journal, and lines that mam 0.1.0 copied from other journals, without entry names."""

    def copy_or_leave(self, entry: Entry, gap: int, *, again: bool) -> None:
        """Leaves a job with a broken directory behind, at entry `gap`, so that the others are copied."""
        if entry.job_id in self._cursor.behind:
            return
        try:
            self._copy(entry, again=again)
        except OSError as error:
            if error.errno not in _OF_ONE_JOB or len(self._cursor.behind) >= BEHIND_LIMIT:
                raise
            self._cursor.behind[entry.job_id] = gap
            self._complain(error)

    def _copy(self, entry: Entry, *, again: bool) -> None:
        """Appends the lines of an entry that are missing, and updates the record and the status."""
        lines = lines_to_copy(entry)
        if not lines:
            return
        with JobFolder(self._root, entry.job_id) as folder:
            fields = entry.fields or {}
            if "prompt" in fields and any(line["event"] in _FIRST_EVENTS for _, line in lines):
                folder.write_meta_once(fields)
            if entry.lines[0]["event"] == "migrated" and folder.began_elsewhere(self._journal_id):
                lines = lines[:1]  # the log has the other lines from the registry that the job came from
            last = folder.mirrored(self._journal_id)
            appended = False
            for origin, line in lines:
                named = {**line, "entry": entry_name(self._journal_id, *origin)}
                may_be_there = again or origin <= last
                if not (may_be_there and self._is_there(folder, entry.job_id, named, again=again)):
                    self._append(folder, entry.job_id, named)
                    appended = True
            # A copied entry may lack its status, but an older entry must not overwrite a newer status.
            if appended or entry.number == last[0] or self._cursor.journal_was_replaced:
                _write_status(folder, entry)

    def _is_there(self, folder: JobFolder, job_id: str, line: AuditRecord, *, again: bool) -> bool:
        """Compares whole lines, since a restored registry uses entry numbers a second time. An upgraded store of mam
        0.1.0 may repeat lines in a new journal, under other entry names."""
        if job_id not in self._there:
            own, others = folder.fingerprints(self._journal_id)
            older = [one for journal, found in others.items() if is_of_0_1_0(self._root, journal) for one in found]
            self._there[job_id] = own, older
        own, older = self._there[job_id]
        unnamed = fingerprint({**line, "entry": ""})
        if fingerprint(line) in own:
            return True
        if not again or unnamed not in older:
            return False
        older.remove(unnamed)  # each of them counts for one line
        return True

    def _append(self, folder: JobFolder, job_id: str, line: AuditRecord) -> None:
        folder.append(line)
        if job_id in self._there:
            self._there[job_id][0].add(fingerprint(line))


def _write_status(folder: JobFolder, entry: Entry) -> None:
    """The status comes from the lines: the fields of an adopted record may be of a later time."""
    for line in reversed(entry.lines):
        status = line.get(_FIRST_EVENTS.get(line["event"], "to" if line["event"] == "status_changed" else ""))
        if status is not None:
            folder.write_status(entry.job_id, status, line["timestamp"])
            return
