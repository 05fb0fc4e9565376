"""Acts that follow each other closely, on jobs that are alike.

Jobs that were registered with the same choices differ in their ids, their numbers, their prompts and the time of their
making, and no claim and no end asks for those. So whoever claims and ends many of them decides for one, with blanks
where it is named, and fills the blanks for the others: most of such an act is deciding, and putting it into words.
"""

from __future__ import annotations

from os import urandom

from mam.jobs.record import Job
from mam.stores.common import claimed
from mam.stores.sql.rows import TOPICS, Row, changing_values, row_of
from mam.writing import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.clock import Moment
    from mam.stores.port import Act, Request

    Names = dict[str, Any]
    """What is a job's own: `job_id`, `number` and `created_at`."""
    Said = tuple[Row, dict[str, Any]]
    """A row after an act, and what is bound to the statements that write it."""

_MOMENT_MS = 50
"""For how long the same is said: every lease of a burst ends when that of its first does."""

_BLANK = urandom(16).hex()
"""What nobody can have written into a job."""
_ID, _NUMBER = f"{_BLANK}-id", f"{_BLANK}-number"
_TIME = f"0-{_BLANK}-time"  # earlier than any: no act comes before the making of its job


class _Decided:
    """An act that was decided for one job, and for how long the same is said of those like it."""

    __slots__ = ("_begins_ms", "_boot_ms", "_ends_ms", "act", "moment", "words")

    def __init__(self, act: Act | Request, moment: Moment) -> None:
        self.act, self.moment = act, moment
        self._begins_ms, self._boot_ms = moment.wall_ms, moment.boot_ms
        self._ends_ms = min(moment.wall_ms + _MOMENT_MS, (moment.wall_ms // 1000 + 1) * 1000)
        self.words: _Words | None = None
        """Made when there is another: most acts stand alone."""

    def stands_for(self, act: Act | Request, moment: Moment) -> bool:
        return (
            self._begins_ms <= moment.wall_ms < self._ends_ms
            and 0 <= moment.boot_ms - self._boot_ms < _MOMENT_MS  # somebody may have set the other clock
            and (act is self.act or act == self.act)
        )


class _Words:
    """What an act says of every job that is like this one."""

    __slots__ = ("_job", "_lines", "_record", "_values", "after", "end")

    def __init__(self, blank: Row, act: Act, moment: Moment) -> None:
        change = act(blank.job, moment)
        self.after, changed = blank.after(change)
        self._job = self.after.job.__dict__
        self._record, self._lines = _form(self.after.record), _form(as_text(change.lines))
        tells = change.job.last_seq != blank.job.last_seq
        self._values = {**changing_values(self.after), "fields": as_text(changed), "tells": tells}
        self.end: _Decided | None = None
        """How a job of which this was said has ended."""

    def said_of(self, names: Names, prompt: str, root: str | None) -> Said:
        row = _SaidRow.__new__(_SaidRow)
        row.job = Job.of({**self._job, **names, "prompt": prompt, "topic_prefix": TOPICS + names["job_id"]})
        row.fields = {**self.after.fields, **names}
        row.record = self._record % names
        row.prompt, row.root, row.by = prompt, root, self
        return row, {**self._values, **names, "record": row.record, "lines": self._lines % names}


class _SaidRow(Row):
    """A row that nobody decided for, and by which words it came to be."""

    __slots__ = ("by",)
    by: _Words


class Burst:
    """The last claim that was decided, and how jobs that were claimed like it end."""

    def __init__(self) -> None:
        self._claim: _Decided | None = None
        self._row: Row | None = None
        """As it was before that claim."""
        self._before = ""

    def claim_decided(self, row: Row, request: Request, moment: Moment) -> None:
        self._claim, self._row = _Decided(request, moment), row

    def claimed_again(
        self, names: Names, record: str, prompt: str, root: str | None, request: Request, moment: Moment
    ) -> Said | None:
        """The same claim of another job; None when it has to be decided."""
        claim = self._claim
        if claim is None or not claim.stands_for(request, moment):
            return None
        if names["created_at"] >= claim.moment.second:  # its time would not change, or the clock has stepped back
            return None
        words = claim.words or self._worded(claim, request)
        if words is None or self._before % names != record:
            return None
        return words.said_of(names, prompt, root)

    def end_decided(self, row: Row, act: Act, moment: Moment) -> None:
        if isinstance(row, _SaidRow):
            row.by.end = _Decided(act, moment)

    def ended_again(self, row: Row, act: Act, moment: Moment) -> Said | None:
        """The same end of another job; None when it has to be decided."""
        if not isinstance(row, _SaidRow):
            return None
        end, job = row.by.end, row.job
        if end is None or not end.stands_for(act, moment) or job.created_at > end.moment.second:
            return None
        words = end.words = end.words or _Words(row.by.after, act, end.moment)
        names = {"job_id": job.job_id, "number": job.number, "created_at": job.created_at}
        return words.said_of(names, row.prompt, row.root)

    def _worded(self, claim: _Decided, request: Request) -> _Words | None:
        row, self._row = self._row, None
        if row is None or not _is_as_registered(row):
            return None
        blanks = {"job_id": _ID, "created_at": _TIME, "updated_at": _TIME}
        fields = {**row.fields, **blanks, "number": _NUMBER}
        blank = row_of(row.job.replace(**blanks, prompt=""), None, fields, as_text(fields))
        self._before = _form(blank.record)
        claim.words = _Words(blank, lambda job, moment: claimed(job, request, moment), claim.moment)
        return claim.words


def _form(text: str) -> str:
    text = text.replace("%", "%%").replace(_ID, "%(job_id)s").replace(_TIME, "%(created_at)s")
    return text.replace(f'"{_NUMBER}"', "%(number)d")


def _is_as_registered(row: Row) -> bool:
    job, fields = row.job, row.fields
    return is_plain(job) and job.updated_at == job.created_at and "number" in fields and "topic_prefix" not in fields


def is_plain(job: Job) -> bool:
    """Most have no key, come after nobody and are held by no session: their rows concern no other."""
    return job.exclusive is None and not job.after and job.claimant is None
