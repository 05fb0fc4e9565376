"""The records of one act, on their way to the disk."""

from __future__ import annotations

from mam.frozen import Frozen
from mam.jobs.change import Change
from mam.stores.common import changed_fields
from mam.writing import fields_replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.stores.files.index import Stamp
    from mam.stores.files.memory import Memory
    from mam.stores.files.records import Prepared, Records


class Step(Frozen):
    """One job's part in an act."""

    before: Job | None
    change: Change
    stamp: Stamp | None = None
    """Of a file that stays as it is; None when the record is to be written."""


class Draft:
    """What a step leaves behind."""

    def __init__(self, step: Step) -> None:
        self._before, self._stamp = step.before, step.stamp
        self._prepared: Prepared | None = None
        self.job, self.lines = step.change.job, step.change.lines
        self.fields = self.job.to_json()
        self.changed = changed_fields(step.before, step.change)

    @property
    def stamp(self) -> Stamp:
        """Of the file that is there now."""
        assert self._stamp is not None
        return self._stamp

    def prepare(self, records: Records, memory: Memory) -> None:
        if self._stamp is None:
            self._prepared = records.prepare(self.job.job_id, self.fields, self._text(memory))

    def discard(self, records: Records) -> None:
        if self._prepared is not None:
            records.discard(self._prepared.temporary)

    def put(self, records: Records) -> None:
        if self._prepared is not None:
            self._stamp = records.put(self._prepared)

    def keep(self, memory: Memory) -> None:
        if self._prepared is not None:
            memory.keep(self.job, self.stamp, self._prepared.text)

    def _text(self, memory: Memory) -> bytes | None:
        """Of the record, if it is made from one that this process has written too."""
        kept = memory.recall(self.job.job_id)
        if kept is None or kept.job is not self._before:
            return None
        return fields_replaced(kept.text, self.fields, self.changed)
