"""Keeps the record files in step with the database, under the store's lock.

| step | killed before the next one, there is |
|---|---|
| 1. the next act finishes what an earlier one left undone | the same |
| 2. record under a temporary name | a leftover, which the next act on that job replaces |
| 3. the database commits | an act that has happened; the next act by anyone writes its files |
| 4. events appended, then the record renamed | the same |
| 5. `mirrored_upto` advances, in the transaction of the next act of another process | the same |
"""

from __future__ import annotations

import os

from mam.errors import StoreUnavailable
from mam.frozen import Frozen
from mam.stores.common import event_of
from mam.stores.files.records import Records, Stamp, events_name, record_name, record_text, stamp_of
from mam.strict_json import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.change import Line
    from mam.jobs.record import Job

ASIDE = "aside"


class Shown(Frozen):
    """One job as its files are to show it."""

    job: Job
    version: int
    """0: the job is gone from the registry."""
    events: list[Line]
    """Those to append."""
    is_new: bool


class Mirror:
    """The files of one registry; `home` is its directory of mam's own."""

    def __init__(self, path: str, home: str, *, keeps_aside: bool = True) -> None:
        """Files that mam has just taken over need not be kept aside."""
        self._path = path
        self._aside = os.path.join(home, ASIDE) if keeps_aside else None
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.records = Records(path, self._descriptor)
        self._prepared: list[tuple[str | None, Shown]] = []

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.close()

    # -- one act -------------------------------------------------------------------------------------------------------

    def prepare(self, shown: list[Shown], epoch: str) -> None:
        """Before the commit. A file that another program changed is kept aside."""
        self._prepared = []
        for one in shown:
            if one.version == 0:
                self._prepared.append((None, one))
                continue
            stamp = Stamp(epoch=epoch, version=one.version)
            self._make_way(one, stamp)
            text = record_text(one.job, stamp)
            self._prepared.append((self.records.prepare(one.job.job_id, text, durable=one.is_new), one))

    def put(self) -> None:
        """After the commit. Events come first: a record of the current version tells that they are there."""
        prepared, self._prepared = self._prepared, []
        for temporary, one in prepared:
            if temporary is None:
                self._remove(one.job.job_id)
                continue
            if one.events:
                self.records.append_events(one.job.job_id, one.events)
            self.records.put(temporary, one.job.job_id)
        if any(one.is_new for _, one in prepared):
            self.records.sync()

    def discard(self) -> None:
        """The act did not happen."""
        prepared, self._prepared = self._prepared, []
        for temporary, _one in prepared:
            if temporary is not None:
                self.records.remove(temporary)

    def _make_way(self, one: Shown, stamp: Stamp) -> None:
        job_id = one.job.job_id
        text = self._text(job_id)
        if text is None:
            return
        found = stamp_of(text)
        if found is None and text:
            self._keep_aside(job_id)
        elif found is not None and not one.is_new and found.epoch == stamp.epoch and found.version >= stamp.version:
            raise self.is_ahead(job_id)

    def _keep_aside(self, job_id: str) -> None:
        if self._aside is not None:
            self.records.keep_aside(job_id, self._aside)

    def _text(self, job_id: str) -> bytes | None:
        from mam.errors import BadRecord

        try:
            return self.records.text(job_id)
        except BadRecord:  # a link, a directory, a file of another user
            return b"?"

    def is_ahead(self, job_id: str) -> StoreUnavailable:
        why = f"is older than its record files (job {job_id}): a backup was restored; `mam rebuild` makes it anew from them"
        return StoreUnavailable(store=self._path, problem=why)

    # -- what an earlier act left undone -------------------------------------------------------------------------------

    def repair(self, one: Shown, epoch: str, *, wholly: bool, takes_over: bool) -> None:
        """Writes the files of a job if they do not show this version. `wholly` is for files that a power cut may have torn.
        A record that another program wrote stays, unless the registry has just taken it over."""
        job_id = one.job.job_id
        found = self._text(job_id)
        stamp = stamp_of(found or b"")
        is_own = stamp is not None and stamp.epoch == epoch
        if stamp is not None and is_own and stamp.version > one.version:
            raise self.is_ahead(job_id)
        is_there = stamp is not None and is_own and stamp.version == one.version
        if is_there and not wholly:
            return
        if (one.events or wholly) and not self.records.has_events(job_id, one.events):
            self.records.replace_events(job_id, one.events)
        is_foreign = bool(found) and stamp is None
        if is_there or (is_foreign and not takes_over and not (wholly and _is_torn(found or b""))):
            return
        if is_foreign:
            self._keep_aside(job_id)
        text = record_text(one.job, Stamp(epoch=epoch, version=one.version))
        self.records.put(self.records.prepare(job_id, text, durable=True), job_id)

    def version_shown(self, job_id: str, epoch: str) -> int:
        """That of a file which mam wrote from this database; 0 for any other."""
        stamp = stamp_of(self._text(job_id) or b"")
        return stamp.version if stamp is not None and stamp.epoch == epoch else 0

    def remove_own(self, job_id: str) -> None:
        """The files of a job that is gone, unless another program wrote the record."""
        text = self._text(job_id)
        if text is None or stamp_of(text) is not None:
            self._remove(job_id)

    def _remove(self, job_id: str) -> None:
        text = self._text(job_id)
        if text is not None and stamp_of(text) is None:
            self._keep_aside(job_id)
        self.records.remove(record_name(job_id))
        self.records.remove(events_name(job_id))


def events_in(lines: tuple[Line, ...]) -> list[Line]:
    return [event for event in map(event_of, lines) if event is not None]


def _is_torn(text: bytes) -> bool:
    try:
        strict_json(text)
    except ValueError:
        return True
    return False
