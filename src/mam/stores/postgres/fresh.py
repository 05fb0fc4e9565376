"""A claim of a job that nobody has touched since it was registered, decided before the job is seen.

All such jobs are alike in what a claim looks at, but for their time limit. So the claim is decided for one that stands
for all of them, and the server does the same to the first that may be claimed, if that one's seal says that it is such
a job: its record is to the letter as it was registered. That takes one trip instead of two.
"""

from __future__ import annotations

import json
from os import urandom

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
    from mam.stores.postgres.wire import Bound, Sent, Statement
    from mam.stores.sql.rows import Row

    Named = tuple[Sent, bytes]
    """What is to be sent, and the token in it."""

_ANYWHERE, _IN_LINE = STATEMENTS["claim fresh"], STATEMENTS["claim in line"]
USUAL_TIMEOUT: int = Job.field_defaults["timeout_sec"]

_MARK = "?"
"""The id of the one that stands for all; the server puts the real one in its place."""
_HEAD = '{{"job_id":"{0}","status":"pending","created_at":"{1}","updated_at":"{1}",'
_SECOND = len("2026-11-16T00:00:00Z")
_BELIEVED_MS = 1000
"""How far the server's time may be from the one that a claim was decided at (`claim fresh`)."""
_HOLDS_NS = _BELIEVED_MS * 1_000_000 // 20
"""For how long a decision is used for the next claims as well."""
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


class _Said:
    """A claim as it was decided and bound, and until when the same may be said of other jobs."""

    __slots__ = ("bound", "request", "statement", "token_at", "until_ns")

    def __init__(self, request: Request, statement: Statement, bound: Bound, now_ns: int) -> None:
        self.request, self.statement, self.bound = request, statement, [*bound]
        self.token_at = statement.parameters.index("token")
        self.until_ns = now_ns + _HOLDS_NS

    def named(self) -> Named:
        """Under another name each time, by which it is known when its answer is lost."""
        bound, token = self.bound.copy(), b"%d" % int.from_bytes(urandom(7))
        bound[self.token_at] = token
        return (self.statement, bound), token


class FreshClaims:
    """How the next claim would be decided, if its job is fresh and has the time limit of the last."""

    def __init__(self) -> None:
        self._timeout_sec = USUAL_TIMEOUT
        self._alike: tuple[int, Row] | None = None
        self._said: _Said | None = None
        self._times = 0
        self._left_out = self._next_left_out = 0

    def expect(self, timeout_sec: int) -> None:
        """Of the next job."""
        if timeout_sec != self._timeout_sec:
            self._timeout_sec, self._said = timeout_sec, None

    def again(self, request: Request, now_ns: int) -> Named | None:
        """What was said last, if it holds for this request as well."""
        said = self._said
        if said is None or now_ns >= said.until_ns or (request is not said.request and request != said.request):
            return None
        self._times += 1
        return said.named()

    def decided(self, request: Request, moment: Moment, now_ns: int, line: Beginning | None) -> Named:
        statement = _ANYWHERE if line is None else _IN_LINE
        bound = statement.bound({**self._decide(request, moment), **(line or {})})
        self._times += 1
        self._said = said = _Said(request, statement, bound, now_ns)
        return said.named()

    def times_said(self) -> int:
        """How many claims were made since this was last asked."""
        times, self._times = self._times, 0
        return times

    def worth_trying(self) -> bool:
        """Where jobs turn out not to be fresh, less and less claims try: a trip for nothing is not free."""
        if self._left_out:
            self._left_out -= 1
            return False
        return True

    def tried(self, *, well: bool) -> None:
        if not well:
            self._said = None
        self._next_left_out = 0 if well else min(2 * self._next_left_out + 1, 63)
        self._left_out = self._next_left_out

    def _decide(self, request: Request, moment: Moment) -> dict[str, Any]:
        """What the server has to write, in pieces around what only it knows."""
        timeout_sec = self._timeout_sec  # once: another thread may expect another
        before = self._one(timeout_sec)
        change = claimed(before.job, request, moment)
        after, changed = before.after(change)
        entry, _events = told(changed, change)
        said_before, _, said_behind = entry["lines"].partition(f'"{_MARK}"')
        written = {name: changed[name] for name in _WRITTEN if name in changed}
        return {
            "label": request.label,
            "timeout_sec": str(timeout_sec),
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

    def _one(self, timeout_sec: int) -> Row:
        alike = self._alike
        if alike is None or alike[0] != timeout_sec:
            self._alike = alike = timeout_sec, new_row(_fresh_job(timeout_sec), None)
        return alike[1]


def _fresh_job(timeout_sec: int) -> Job:
    return Job(
        job_id=_MARK, status=PENDING, created_at="", updated_at="", prompt="", agent=_MARK, agent_session=_MARK,
        broker=NO_BROKER, topic_prefix="", timeout_sec=timeout_sec, expected_artifacts=[], unknown={},
    )  # fmt: skip
