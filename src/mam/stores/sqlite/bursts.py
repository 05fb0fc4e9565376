"""Claims that follow each other closely.

What a claim says of a job that nobody has touched since it was registered is the same for every such job, but for the
job's id, while the second lasts and the same work is asked for. So whoever claims many of them decides for the first,
and says it again of the others: half of a claim is deciding and putting it into words.
"""

from __future__ import annotations

from mam.jobs.record import Job
from mam.stores.sql.rows import Row, with_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.clock import Moment
    from mam.jobs.change import Change
    from mam.jobs.record import Json
    from mam.stores.port import Request

_MOMENT_MS = 50
"""For how long: every lease of a burst ends when that of its first does."""

_TOUCHED = frozenset(
    ("attempt", "owner", "lease", "claimant", "claimed_at", "heard_at", "reason", "supervised", "said")
)  # fmt: skip
"""What a claim sets and a job has none of before its first."""


class _First:
    """A claim that was decided: of which job and for whom, how long it stands for others, and its words."""

    __slots__ = ("begins_ms", "boot_ms", "changed", "ends_ms", "fields", "job_id", "request", "timeout_sec", "values")

    def __init__(self, request: Request, moment: Moment, change: Change, changed: Json, values: dict[str, Any]) -> None:
        self.job_id, self.timeout_sec, self.request = change.job.job_id, change.job.timeout_sec, request
        self.begins_ms, self.boot_ms = moment.wall_ms, moment.boot_ms
        self.ends_ms = min(moment.wall_ms + _MOMENT_MS, (moment.wall_ms // 1000 + 1) * 1000)
        self.fields, self.changed, self.values = change.fields, changed, values

    def stands_for(self, job: Job, request: Request, moment: Moment) -> bool:
        return (
            self.begins_ms <= moment.wall_ms < self.ends_ms
            and 0 <= moment.boot_ms - self.boot_ms < _MOMENT_MS  # somebody may have set the other clock
            and job.timeout_sec == self.timeout_sec
            and job.created_at <= self.fields["updated_at"]
            and (request is self.request or request == self.request)
        )


class Burst:
    """The last claim that was decided, if its job was such a one."""

    def __init__(self) -> None:
        self._first: _First | None = None

    def decided(
        self, row: Row, request: Request, moment: Moment, change: Change, changed: Json, values: dict[str, Any]
    ) -> None:
        """`values` is what was bound to the statements."""
        self._first = _First(request, moment, change, changed, values) if _beginning(row) else None

    def again(self, row: Row, request: Request, moment: Moment) -> tuple[Row, dict[str, Any]] | None:
        """The row after the same claim, and what is to be bound; None when it has to be decided."""
        first, job = self._first, row.job
        if first is None or not first.stands_for(job, request, moment) or not (head := _beginning(row)):
            return None
        before, job_id = first.values, job.job_id
        # What the claim set stands behind the id and the time of its making, and before what it left alone.
        own = f'{{"job_id":"{job_id}","created_at":"{job.created_at}",'
        record = f"{own}{before['fields'][1:-1]}{row.record[len(head) - 1 :]}"
        lines = before["lines"].replace(f'"job_id":"{first.job_id}"', f'"job_id":"{job_id}"', 1)
        after = with_record(row, Job.of({**job.__dict__, **first.fields}), first.changed, record)
        return after, {**before, "job_id": job_id, "number": job.number, "record": record, "lines": lines}


def _beginning(row: Row) -> str:
    """How the record begins of a job that is as it was registered and waits for nobody; nothing for any other."""
    job = row.job
    begun = job.created_at
    head = f'{{"job_id":"{job.job_id}","status":"pending","created_at":"{begun}","updated_at":"{begun}",'
    return head if row.record.startswith(head) and row.has_none_of(_TOUCHED) and is_plain(job) else ""


def is_plain(job: Job) -> bool:
    """Most have no key, come after nobody and are held by no session: their rows concern no other."""
    return job.exclusive is None and not job.after and job.claimant is None
