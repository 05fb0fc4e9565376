"""Claims and ends of plain jobs, which most are: no key, after nobody, held by no session.

Whoever claims one asks a single question, and whoever ends one that it has claimed asks nothing: the row is written if
it is still the same. In all other cases an act is done as any other.
"""

from __future__ import annotations

from abc import abstractmethod

from mam.jobs.status import PENDING
from mam.stores.common import claimed
from mam.stores.sql.damage import check_same, contradiction
from mam.stores.sql.look import Look
from mam.stores.sql.rows import Row, changing_values, entry_of
from mam.stores.sql.store import SqlStore
from mam.stores.sqlite.bursts import Burst, is_plain
from mam.writing import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import apsw

    from mam.clock import Moment
    from mam.jobs.change import Change
    from mam.jobs.record import Job, Json
    from mam.stores.port import Act, Request


class PlainStore(SqlStore):
    """The part of the store that does it."""

    def __init__(self) -> None:
        super().__init__()
        self._burst = Burst()

    @abstractmethod
    def _now(self) -> Moment:
        """The time, by which leases of an earlier boot are no longer kept."""

    @abstractmethod
    def _do(self, query: str, values: Mapping[str, Any] = ...) -> apsw.Cursor:
        """Every statement goes through here; one that answers nothing has happened when this returns."""

    @abstractmethod
    def _ask(self, query: str, values: Mapping[str, Any]) -> list[Any]:
        """What the query answers."""

    @abstractmethod
    def _go_by_this_boot(self, values: dict[str, Any]) -> None: ...

    # -- the next of a label ---------------------------------------------------------------------------------------

    def _settle_or_claim(self, request: Request) -> tuple[Job | None, bool]:
        """Most find a job that nothing stands before, by one question."""
        if request.job_id is None:
            moment = self._now()
            for record, prompt, root, is_hindered in self._ask("ready", {"label": request.label, **moment.__dict__}):
                if not is_hindered:
                    return self._claim_ready(record, prompt, root, request, moment), False
        return super()._settle_or_claim(request)

    def _claim_ready(self, record: str, prompt: str, root: str | None, request: Request, moment: Moment) -> Job | None:
        said = self._burst.claimed_again(record, prompt, root, request, moment, self.address)
        if said is None:
            row = Row(record, prompt, root, self.address)
            if request.agent_id is not None:
                return self._claim(request, Look(moment, [], False, row))
            check_same(row, PENDING, request.label, self.address)
            return self._believing(row, lambda: self._claim_decided(row, request, moment))
        after, values = said
        self._do("insert entry", values)
        self._write_row("update plain job", values, record)
        self._remember(after)
        return after.job

    def _claim_decided(self, row: Row, request: Request, moment: Moment) -> Job:
        job = self._write(row, claimed(row.job, request, moment))
        self._burst.claim_decided(job, request, moment)
        return job

    # -- what this store has claimed -------------------------------------------------------------------------------

    def _change(self, job_id: str, act: Act) -> Job:
        """Most jobs are as this store left them. Then nothing is read: the row is written if it is still the same."""
        row = self._known.get(job_id)
        if row is not None and is_plain(row.job):
            moment = self.clock.now()
            said = self._burst.ended_again(row, act, moment)
            job = self._decide_known(row, act, moment) if said is None else self._end_known(row, *said)
            if job is not None:
                return job
        return super()._change(job_id, act)

    def _decide_known(self, row: Row, act: Act, moment: Moment) -> Job | None:
        """The job after the act, if it was still as it is known here and concerns no other now."""
        try:
            change = act(row.job, moment)
        except Exception:  # the job may be another by now: only the real one is complained about
            return None
        if not change.lines or not is_plain(change.job):
            return None
        if not change.job.status.ended:
            return self._update_known(row, change)
        self._burst.end_decided(row, act, moment)
        record, fields, lines = row.ended(change, as_text)
        values = {
            "job_id": row.job.job_id, "number": row.job.number, "status": change.job.status,
            "record": record, "fields": fields, "lines": lines,
        }  # fmt: skip
        return self._end_known(row, change.job, values)

    def _end_known(self, row: Row, ended: Job, values: dict[str, Any]) -> Job | None:
        values["before"] = row.record
        self._do("insert next entry" if row.job.last_seq else "insert entry", values)
        if not self._is_written("end known job", values):
            return None
        del self._known[ended.job_id]
        return ended

    def _update_known(self, row: Row, change: Change) -> Job | None:
        """The same of a job that goes on."""
        after, changed = row.after(change)
        values = self._completed(changing_values(after), row, changed, change)
        self._write_entry(row, values)
        if not self._is_written("update known job", values):
            return None
        self._remember(after)
        return change.job

    def _is_written(self, query: str, values: Mapping[str, Any]) -> bool:
        """Whether the row was still the same; else nothing is to be heard of the act."""
        if self._do(query, values).connection.changes():
            return True
        self._do("take entry back")
        return False

    def _write_entry(self, before: Row, values: dict[str, Any]) -> None:
        """Only one that tells something, and is not the first that does, has to look for the one before it."""
        self._do("insert next entry" if values["tells"] and before.job.last_seq else "insert entry", values)

    def _write_row(self, query: str, values: Mapping[str, Any], before: str) -> None:
        """Where its own number says that it stands: somebody may have written another into the record."""
        if not self._do(query, values).connection.changes():
            raise contradiction(before, self.address)

    def _completed(self, values: dict[str, Any], before: Row, fields: Json, change: Change) -> dict[str, Any]:
        """All that is bound to the statements which put a row in the place of the one before."""
        self._go_by_this_boot(values)
        values.update(entry_of(fields, change))
        values["tells"], values["before"] = change.job.last_seq != before.job.last_seq, before.record
        return values
