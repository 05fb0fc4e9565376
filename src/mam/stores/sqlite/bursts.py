"""Claims that follow each other closely.

What a claim says of a job that nobody has touched since it was registered is the same for every such job, but for the
job's id, while the second lasts and the same work is asked for. So whoever claims many of them decides for the first,
and says it again of the others: half of a claim is deciding and putting it into words.
"""

from __future__ import annotations

from mam.jobs.record import Job
from mam.stores.sql.rows import loaded, row_of, whole_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.clock import Moment
    from mam.jobs.change import Change
    from mam.jobs.record import Json
    from mam.stores.port import Request
    from mam.stores.sql.rows import Row

_MOMENT_MS = 50
"""For how long: every lease of a burst ends when that of its first does."""

_MARKS = frozenset((
    "attempt", "owner", "lease", "claimant", "claimed_at", "heard_at", "reason", "supervised", "said",
    "exclusive", "after",
))  # fmt: skip
"""What a claim sets and a job has none of before its first, and what makes a job the concern of others."""


class _First:
    """A claim that was decided: for whom, of what kind of job, how long it stands for others, and its words."""

    __slots__ = ("begins_ms", "behind_id", "boot_ms", "changed", "ends_ms", "fields", "request", "timeout_sec",
                 "until_id", "values", "words")  # fmt: skip

    def __init__(self, request: Request, moment: Moment, change: Change, changed: Json, values: dict[str, Any]) -> None:
        self.request, self.timeout_sec = request, change.job.timeout_sec
        self.begins_ms, self.boot_ms = moment.wall_ms, moment.boot_ms
        self.ends_ms = min(moment.wall_ms + _MOMENT_MS, (moment.wall_ms // 1000 + 1) * 1000)
        self.fields, self.changed, self.values, self.words = change.fields, changed, values, values["fields"][1:-1]
        self.until_id, said, behind = values["lines"].partition('"job_id":"')
        self.until_id += said
        self.behind_id = behind[len(change.job.job_id) :]

    def stands_for(self, request: Request, moment: Moment) -> bool:
        return (
            self.begins_ms <= moment.wall_ms < self.ends_ms
            and 0 <= moment.boot_ms - self.boot_ms < _MOMENT_MS  # somebody may have set the other clock
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
        is_such = _beginning(row.record, row.fields)
        self._first = _First(request, moment, change, changed, values) if is_such else None

    def again(
        self, record: str, prompt: str, root: str | None, request: Request, moment: Moment, store: str
    ) -> tuple[Row, dict[str, Any]] | None:
        """The row that was found, after the same claim, and what is to be bound; None when it has to be decided."""
        first = self._first
        if first is None or not first.stands_for(request, moment):
            return None
        fields = loaded(record, store)
        head = _beginning(record, fields)
        whole = whole_fields(fields, prompt) if head else None
        if whole is None or whole["timeout_sec"] != first.timeout_sec or whole["agent_session"] != request.label:
            return None
        job_id, begun = whole["job_id"], whole["created_at"]
        whole.update(first.fields)
        if whole["updated_at"] < begun:
            return None
        # What the claim set stands behind the id and the time of its making, and before what it left alone.
        text = f'{{"job_id":"{job_id}","created_at":"{begun}",{first.words}{record[len(head) - 1 :]}'
        lines = f"{first.until_id}{job_id}{first.behind_id}"
        values = {**first.values, "job_id": job_id, "number": whole["number"], "record": text, "lines": lines}
        return row_of(Job.of(whole), root, {**fields, **first.changed}, text), values


def _beginning(record: str, fields: Json) -> str:
    """How the record begins of a job that is as it was registered and concerns no other; nothing for any other."""
    begun = fields.get("created_at")
    head = f'{{"job_id":"{fields.get("job_id")}","status":"pending","created_at":"{begun}","updated_at":"{begun}",'
    is_such = record.startswith(head) and fields["status"] == "pending" and fields.keys().isdisjoint(_MARKS)
    return head if is_such else ""


def is_plain(job: Job) -> bool:
    """Most have no key, come after nobody and are held by no session: their rows concern no other."""
    return job.exclusive is None and not job.after and job.claimant is None
