"""Claims and ends of plain jobs, which most are: no key, after nobody, held by no session.

Whoever claims one asks a single question, and whoever ends one that it has claimed asks nothing: the row is written if
it is still the same. In all other cases an act is done as any other.

While a commit is synced nothing of it stays in the processor's caches, so what an act takes is how much there is of it
to go through: statements are bound by place, and few functions stand between them.
"""

from __future__ import annotations

from mam.errors import BadRecord
from mam.jobs.status import PENDING
from mam.stores.common import claimed
from mam.stores.sql.damage import check_same, contradiction
from mam.stores.sql.rows import Row, changing_values
from mam.stores.sql.store import UNBELIEVABLE
from mam.stores.sqlite.acting import ActingStore
from mam.stores.sqlite.statements import placed
from mam.writing import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import apsw

    from mam.clock import Moment
    from mam.jobs.change import Change
    from mam.jobs.record import Job
    from mam.stores.port import Act, Request

_READY = placed("ready", "label", "boot_id", "boot_ms", "wall_ms")
_ENTRY = placed("insert entry", "job_id", "fields", "lines")
_NEXT_ENTRY = placed("insert next entry", "job_id", "fields", "lines", "number")
_CLAIM = placed("claim plain job", "number", "job_id", "record", "due_ms", "boot_id", "boot_ms")
_END = placed("end known job", "number", "before", "record", "status")

STAYS = 20
"""Whoever has claimed so many jobs is no command that somebody typed: a quicker encoder is worth its import then."""


class PlainStore(ActingStore):
    """The part of the store that does it."""

    _claims = 0

    # -- the next of a label ---------------------------------------------------------------------------------------

    def claim(self, request: Request) -> Job | None:
        if request.job_id is None and request.agent_id is None:
            try:
                job = self._act(self._claim_ready, request)
            except BadRecord:
                job = None  # whoever looks more closely says what is wrong with it, and sets it aside
            if self._claims >= STAYS:  # here, and not while others wait for the transaction to end
                self._claims, self._encode = 0, _quick_encoder()
            if job is not None:
                return job
        return super().claim(request)

    def _claim_ready(self, request: Request) -> Job | None:
        """The first of the label, if it is plain and nothing stands before it."""
        cursor, moment = self._cursor, self.clock.now()
        assert cursor is not None, "there is a transaction"
        if moment.boot_id != self._boot_id:
            self._leave_other_boots(moment)
        asked = (request.label, moment.boot_id, moment.boot_ms, moment.wall_ms)
        found: list[Any] = cursor.execute(_READY, asked).fetchall()
        if not found or found[0][3]:
            return None
        record, prompt, root, _ = found[0]
        row = Row(record, prompt, root, self.address)
        check_same(row, PENDING, request.label, self.address)
        try:
            return None if row.job.after else self._claim_row(row, request, moment, cursor)
        except UNBELIEVABLE:
            raise contradiction(record, self.address) from None

    def _claim_row(self, row: Row, request: Request, moment: Moment, cursor: apsw.Cursor) -> Job:
        change, encode = claimed(row.job, request, moment), self._encode
        after, changed = row.after(change, encode)
        job, lease = change.job, change.job.lease
        assert lease is not None, "it has just been claimed"
        boot = (lease.boot_id, lease.boot_ms) if lease.boot_id else (None, None)
        cursor.execute(_ENTRY, (job.job_id, encode(changed), encode(change.lines)))
        cursor.execute(_CLAIM, (job.number, job.job_id, after.record, lease.wall_ms, *boot))
        if not cursor.connection.changes():  # somebody has written another number into the record
            raise contradiction(row.record, self.address)
        self._remember(after)
        self._claims += 1
        return job

    def _leave_other_boots(self, moment: Moment) -> None:
        """Leases of an earlier boot are no longer kept by its clock."""
        self._do("other boots", {"boot_id": moment.boot_id})
        self._boot_id = moment.boot_id

    # -- what this store has claimed -------------------------------------------------------------------------------

    def _change(self, job_id: str, act: Act) -> Job:
        """Most jobs are as this store left them. Then nothing is read: the row is written if it is still the same."""
        row = self._known.get(job_id)
        if row is not None and _is_plain(row.job):
            job = self._change_known(row, act)
            if job is not None:
                return job
        return super()._change(job_id, act)

    def _change_known(self, row: Row, act: Act) -> Job | None:
        """The job after the act, if it was still as it is known here and concerns no other now."""
        try:
            change = act(row.job, self.clock.now())
        except Exception:  # the job may be another by now: only the real one is complained about
            return None
        job = change.job
        if not change.lines or not _is_plain(job):
            return None
        if not (self._end_known if job.status.ended else self._update_known)(row, change):
            self._do("take entry back")  # nothing is to be heard of the act
            return None
        return job

    def _end_known(self, row: Row, change: Change) -> bool:
        """Whether the row was still the same; there is an entry of it in any case."""
        job, cursor = row.job, self._cursor
        assert cursor is not None, "there is a transaction"
        record, fields, lines = row.ended(change, self._encode)
        entry = (job.job_id, fields, lines)
        if job.last_seq:  # an entry was told before, and this one names it
            cursor.execute(_NEXT_ENTRY, (*entry, job.number))
        else:
            cursor.execute(_ENTRY, entry)
        cursor.execute(_END, (job.number, row.record, record, change.job.status))
        self._known.pop(job.job_id, None)
        return cursor.connection.changes() > 0

    def _update_known(self, row: Row, change: Change) -> bool:
        """The same of a job that goes on."""
        after, changed = row.after(change, self._encode)
        values = self._completed(changing_values(after), row, changed, change)
        self._write_entry(row, values)
        if not self._do("update known job", values).connection.changes():
            return False
        self._remember(after)
        return True


def _is_plain(job: Job) -> bool:
    """Most have no key, come after nobody and are held by no session: their rows concern no other."""
    return job.exclusive is None and not job.after and job.claimant is None


def _quick_encoder() -> Callable[[object], str]:
    try:
        from mam.stores.sql.encoding import quick_text
    except (ImportError, OSError):  # what it needs is not installed, or cannot be opened; it is only quicker
        return as_text
    return quick_text
