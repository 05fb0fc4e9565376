"""A claim of a job that nobody has touched since it was registered, decided before the job is seen.

All such jobs are alike in what a claim looks at, but for their time limit. So the claim is decided for one that stands
for all of them, and the server does the same to the first that may be claimed, if that one's seal says that it is such
a job: its record is to the letter as it was registered. That takes one trip instead of two.
"""

from __future__ import annotations

import json

from mam.jobs.record import NO_BROKER, Job
from mam.jobs.status import PENDING
from mam.stores.common import claimed
from mam.stores.postgres.acting import STATEMENTS
from mam.stores.sql.rows import changing_values, new_row, told
from mam.writing import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.clock import Moment
    from mam.stores.port import Request
    from mam.stores.postgres.line import Beginning
    from mam.stores.postgres.wire import Sent
    from mam.stores.sql.rows import Row

_ANYWHERE, _IN_LINE = STATEMENTS["claim fresh"], STATEMENTS["claim in line"]
USUAL_TIMEOUT: int = Job.field_defaults["timeout_sec"]

_MARK = "?"
"""The id of the one that stands for all; the server puts the real one in its place."""
_HEAD = '{{"job_id":"{0}","status":"pending","created_at":"{1}","updated_at":"{1}",'
_SECOND = len("2026-11-16T00:00:00Z")
_BELIEVED_MS = 1000
"""How far the server's time may be from the one that a claim was decided at (`claim fresh`)."""
_HOLDS_MS = _BELIEVED_MS // 20
"""For how long a decision is used for the next claim as well."""
_WRITTEN = ("attempt", "owner", "lease", "claimant", "claimed_at", "heard_at", "reason", "supervised", "said")
"""What a claim writes that a new job has none of."""


def timeout_to_seal(values: dict[str, Any]) -> int | None:
    """The time limit of a new row that a claim may know by its seal; None for one that it has to look at."""
    record, created_at = values["record"], values["created_at"]
    if values["exclusive"] is not None or len(created_at) != _SECOND:
        return None
    if not record.startswith(_HEAD.format(values["job_id"], created_at)):
        return None
    fields = json.loads(record)
    return None if any(name in fields for name in _WRITTEN) else fields.get("timeout_sec", USUAL_TIMEOUT)


class FreshClaims:
    """How the next claim would be decided, if its job is fresh and has the time limit of the last."""

    def __init__(self) -> None:
        self.timeout_sec = USUAL_TIMEOUT
        self._alike: tuple[int, Row] | None = None
        self._last: tuple[int, int, Request, Beginning | None, Sent] | None = None
        self._left_out = self._next_left_out = 0

    def worth_trying(self) -> bool:
        """Where jobs turn out not to be fresh, less and less claims try: a trip for nothing is not free."""
        if self._left_out:
            self._left_out -= 1
            return False
        return True

    def tried(self, *, well: bool) -> None:
        self._next_left_out = 0 if well else min(2 * self._next_left_out + 1, 63)
        self._left_out = self._next_left_out

    def decided(self, request: Request, moment: Moment, token: str, line: Beginning | None) -> Sent:
        """The claim, under a name by which it is known when its answer is lost."""
        statement, bound = self._bound(request, moment, line)
        bound = bound.copy()
        bound[statement.parameters.index("token")] = token.encode()
        return statement, bound

    def _bound(self, request: Request, moment: Moment, line: Beginning | None) -> Sent:
        if self._last is not None:
            wall_ms, timeout_sec, asked, known, sent = self._last
            soon_after = 0 <= moment.wall_ms - wall_ms < _HOLDS_MS and known is line
            if soon_after and timeout_sec == self.timeout_sec and asked.__dict__ == request.__dict__:
                return sent
        statement = _ANYWHERE if line is None else _IN_LINE
        sent = statement, statement.bound({**self._decide(request, moment), **(line or {})})
        self._last = moment.wall_ms, self.timeout_sec, request, line, sent
        return sent

    def _decide(self, request: Request, moment: Moment) -> dict[str, Any]:
        """What the server has to write, in pieces around what only it knows."""
        before = self._one()
        change = claimed(before.job, request, moment)
        after, changed = before.after(change)
        entry, _events = told(changed, change)
        said_before, _, said_behind = entry["lines"].partition(f'"{_MARK}"')
        written = {name: changed[name] for name in _WRITTEN if name in changed}
        return {
            "label": request.label,
            "timeout_sec": str(self.timeout_sec),
            "now": str(moment.wall_ms / 1000),
            "soon": str(moment.wall_ms + _BELIEVED_MS),
            "second": change.job.updated_at,
            "written": f'","updated_at":"{change.job.updated_at}",{as_text(written)[1:-1]}',
            "due_ms": str(changing_values(after)["due_ms"]),
            "fields": entry["fields"],
            "said_before": f'{said_before}"',
            "said_behind": f'"{said_behind}',
            "token": None,
        }

    def _one(self) -> Row:
        if self._alike is None or self._alike[0] != self.timeout_sec:
            self._alike = self.timeout_sec, new_row(_fresh_job(self.timeout_sec), None)
        return self._alike[1]


def _fresh_job(timeout_sec: int) -> Job:
    return Job(
        job_id=_MARK, status=PENDING, created_at="", updated_at="", prompt="", agent=_MARK, agent_session=_MARK,
        broker=NO_BROKER, topic_prefix="", timeout_sec=timeout_sec, expected_artifacts=[], unknown={},
    )  # fmt: skip
