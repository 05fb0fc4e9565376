"""What a job has to tell people who do not look at the page, and what became of each attempt to tell it. Pure.

The outcomes are lines of the history of the job, so a server that was killed goes on where it was.
"""

from __future__ import annotations

from mam.errors import MamError
from mam.jobs.change import Change, audit_record
from mam.jobs.question import open_questions
from mam.jobs.status import ERROR
from mam.util.clock import parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.change import AuditRecord
    from mam.jobs.record import Job
    from mam.util.clock import Moment

QUESTION, FAILURE = "question", "failure"
ACCEPTED, GONE, REFUSED, FAILED = "accepted", "gone", "refused", "failed"
"""Outcomes: the push service took it; it no longer knows the browser; it will never take it; it may take it later."""
LINE = "notified"
WAITS = (30.0, 120.0, 600.0, 3600.0)
"""Seconds after each failed attempt; there is none after the last one."""
FRESH_SECONDS = 24 * 3600
"""What is older is on the page only."""


class Notice(Frozen):
    """One thing to tell about one job."""

    kind: str
    subject: str
    """Unique in its job: `question 2`, `failure`."""
    at_ms: int


def notices_of(job: Job, now_ms: int) -> tuple[Notice, ...]:
    """What a person would want to hear of this job now. Whether a failure needs a look, the registry knows."""
    found = [
        Notice(kind=QUESTION, subject=f"{QUESTION} {one.number}", at_ms=at_ms)
        for one in open_questions(job)
        if (at_ms := _ms(one.asked_at)) is not None
    ]
    ended_ms = _ms(job.ended_at)
    if job.status is ERROR and ended_ms is not None:
        found.append(Notice(kind=FAILURE, subject=FAILURE, at_ms=ended_ms))
    return tuple(one for one in found if now_ms - one.at_ms < FRESH_SECONDS * 1000)


class Tried(Frozen):
    """The attempts to send one notice to one browser, so far."""

    count: int = 0
    outcome: str = ""
    at_ms: int = 0

    def after(self, outcome: str, at_ms: int) -> Tried:
        return Tried(count=self.count + 1, outcome=outcome, at_ms=at_ms)

    def due_in(self, now_ms: int) -> float | None:
        """Seconds until the next attempt (0: now); None when there is none."""
        if not self.count:
            return 0.0
        if self.outcome != FAILED or self.count > len(WAITS):
            return None
        return max(0.0, WAITS[self.count - 1] - max(0, now_ms - self.at_ms) / 1000)


def tried(history: Iterable[AuditRecord], notice: Notice, to: str) -> Tried:
    found = Tried()
    for line in history:
        if line.get("event") == LINE and (line.get("notice"), line.get("to")) == (notice.subject, to):
            found = found.after(str(line.get("outcome")), _ms(line.get("timestamp")) or 0)
    return found


def note(job: Job, moment: Moment, *, subject: str, to: str, outcome: str, why: str | None = None) -> Change:
    """Notes what became of an attempt. The work has not changed, so the record stays as it is."""
    line = audit_record("notified", moment, job, notice=subject, to=to, outcome=outcome, why=why)
    return Change(job=job, lines=(line,))


def _ms(text: object) -> int | None:
    try:
        return parse_time(text) if isinstance(text, str) else None
    except (ValueError, MamError):
        return None
