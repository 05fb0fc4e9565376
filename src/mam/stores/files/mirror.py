"""Writes the record files of a files store: `<job_id>.json` and `<job_id>.events.log`, under the store's lock.

`FilesStore` calls this module in every transaction. The database decides; the files follow it:

| step | function | a process killed after it leaves |
|---|---|---|
| 1. finish the files of acts whose writer was killed | `Mirror.repair` | nothing to do |
| 2. write each changed record under a temporary name | `Mirror.prepare` | a temporary file, later replaced |
| 3. commit the database | `SqliteStore._commit` | an act whose files the next act writes (step 1) |
| 4. append the events, then rename the record | `Mirror.publish` | the same |
| 5. name the last entry in the lock file | `note_end` | the same |
| 6. save `mirrored_upto`, in a later transaction | `FilesStore._finish_earlier_acts` | the same |
"""

from __future__ import annotations

import os

from mam.errors import AlreadyRegistered, BadRecord, StoreUnavailable
from mam.stores.common import event_in_line
from mam.stores.files.records import RecordFiles, RecordStamp, events_name, read_stamp, record_name, record_text
from mam.util.frozen import Frozen
from mam.util.strict_json import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.change import AuditRecord
    from mam.jobs.record import Job

ASIDE = "aside"


class RecordUpdate(Frozen):
    """One job whose files a transaction has to write."""

    job: Job
    version: int
    """0: the job left the registry."""
    events: list[AuditRecord]
    """The events to append; all of them for a new job."""
    is_new: bool
    is_adopted: bool = False
    """Whether this transaction adopts the file that is there, so that no copy of it has to be kept."""


class Mirror:
    """The record files of one registry; `home` is its `.store` directory."""

    def __init__(self, path: str, home: str) -> None:
        self._path = path
        self._aside = os.path.join(home, ASIDE)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.records = RecordFiles(path, self._descriptor)
        self._prepared: list[tuple[str | None, RecordUpdate]] = []

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            try:
                os.close(descriptor)
            except OSError:
                pass  # of a directory that was only read: nothing is lost, and `__del__` must not print a traceback

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.close()

    # -- one transaction: prepare, commit, publish ---------------------------------------------------------------------

    def prepare(self, updates: list[RecordUpdate], epoch: str) -> None:
        """Before the commit: writes the records under temporary names, and keeps a copy of each file that another
        program changed."""
        self._prepared = []
        for one in updates:
            if one.version == 0:
                self._prepared.append((None, one))
                continue
            stamp = RecordStamp(epoch=epoch, version=one.version)
            self._check_replaceable(one, stamp)
            text = record_text(one.job, stamp)
            self._prepared.append((self.records.prepare(one.job.job_id, text, durable=one.is_new), one))

    def publish(self) -> None:
        """After the commit. Events come first: a record with the current version means that the log has its events."""
        prepared, self._prepared = self._prepared, []
        for temporary, one in prepared:
            if temporary is None:
                self._remove(one.job.job_id)
                continue
            if one.events and one.is_new:
                self.records.replace_events(one.job.job_id, one.events, self._aside)
            elif one.events:
                self.records.append_events(one.job.job_id, one.events)
            self.records.publish(temporary, one.job.job_id)
        if any(one.is_new for _, one in prepared):
            self.records.sync()

    def discard(self) -> None:
        """After a rollback: removes the temporary files."""
        prepared, self._prepared = self._prepared, []
        for temporary, _one in prepared:
            if temporary is not None:
                self.records.remove(temporary)

    def _check_replaceable(self, one: RecordUpdate, stamp: RecordStamp) -> None:
        job_id = one.job.job_id
        text = self._text(job_id)
        if text is None:
            return
        if one.is_new and not one.is_adopted:
            raise AlreadyRegistered(job=job_id)  # by another program, or before a backup was restored
        found = read_stamp(text)
        if found is None or found.epoch != stamp.epoch:
            if text and not one.is_adopted:
                self.records.save_aside(job_id, self._aside)
        elif not one.is_new and found.version >= stamp.version:
            raise self.older_database(job_id)

    def _text(self, job_id: str) -> bytes | None:
        try:
            return self.records.read_bytes(job_id)
        except BadRecord:  # a link, a directory, a file of another user
            return b"?"

    def older_database(self, job_id: str) -> StoreUnavailable:
        return older_database(self._path, f"job {job_id}")

    # -- files that a killed writer or a power cut left behind ---------------------------------------------------------

    def repair(
        self,
        job: Job,
        stamp: RecordStamp,
        events: Callable[[], list[AuditRecord]],
        *,
        is_adopted: bool,
        trust_stamp: bool,
    ) -> None:
        """Writes the files of a job unless the record has this version already. After a power cut that is not enough
        (`trust_stamp` is false): the event log may still lack lines."""
        job_id = job.job_id
        text = self._text(job_id)
        found = read_stamp(text or b"")
        if found is not None and found.epoch == stamp.epoch:
            if found.version > stamp.version:
                raise self.older_database(job_id)
            if found.version == stamp.version and trust_stamp:
                return
        if job.last_seq:
            self.records.replace_events(job_id, events(), self._aside)
        if text and (found is None or found.epoch != stamp.epoch) and not is_adopted:
            if _is_json_object(text):
                return  # another program changed it: `prepare` keeps a copy when mam next writes the job
            self.records.save_aside(job_id, self._aside)
        self.records.publish(self.records.prepare(job_id, record_text(job, stamp), durable=True), job_id)

    def mirrored_version(self, job_id: str, epoch: str) -> int:
        """The version in a record file that mam wrote from this database; 0 for any other file."""
        stamp = read_stamp(self._text(job_id) or b"")
        return stamp.version if stamp is not None and stamp.epoch == epoch else 0

    def remove_job(self, job_id: str) -> None:
        """Removes the files of a job that left the registry, unless another program wrote the record."""
        text = self._text(job_id)
        if text is None or read_stamp(text) is not None or not _is_json_object(text):
            self._remove(job_id)

    def _remove(self, job_id: str) -> None:
        text = self._text(job_id)
        if text and read_stamp(text) is None:
            self.records.save_aside(job_id, self._aside)
        self.records.remove(record_name(job_id))
        try:
            self.records.remove(events_name(job_id))
        except OSError:
            pass  # a directory, which mam did not make


def _is_json_object(text: bytes) -> bool:
    try:
        return isinstance(strict_json(text), dict)
    except ValueError:
        return False


def older_database(path: str, what: str) -> StoreUnavailable:
    return StoreUnavailable(store=path, problem=f"{older_text(what)}; `mam rebuild` makes it again from them")


def older_text(what: str) -> str:
    return f"is older than its record files ({what}): a backup was restored"


def events_in_lines(lines: tuple[AuditRecord, ...]) -> list[AuditRecord]:
    return [event for event in map(event_in_line, lines) if event is not None]
