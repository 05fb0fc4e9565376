"""Claims and completions that follow each other closely.

Of a job that is as it was registered, a claim says the same as of any other such job, but for its id, and so does its
completion: neither looks at what else jobs differ in. So whoever works on many of them decides for one without a name,
and says it again of the others while the moment lasts. Most of an act is deciding, and putting it into words.
"""

from __future__ import annotations

from functools import partial
from os import urandom

from mam.jobs.acts import complete
from mam.jobs.record import MOST, Job
from mam.jobs.status import PENDING
from mam.stores.common import changed_fields, claimed
from mam.stores.sql.rows import FIXED, NEW, TOPICS, Row, changing_values, loaded, row_of
from mam.writing import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.clock import Moment
    from mam.jobs.change import Change
    from mam.jobs.record import Json
    from mam.stores.port import Act, Request

_USUAL_TIMEOUT: int = Job.field_defaults["timeout_sec"]

_MOMENT_MS = 50
"""For how long: every lease of a burst ends when that of its first does."""
_LEAST_LEASE = 1.0
"""In seconds: a shorter one would be over too soon by a part that is felt."""

UNASKED = frozenset((
    "job_id", "status", "created_at", "updated_at", "agent", "agent_session", "broker", "timeout_sec",
    "idle_timeout_sec", "number", "priority", "max_losses", "max_retries", "key", "retry_of", "workdir", "origin_host",
    "on_dependency_failure", "parent_id", "depth", "workspace", "permissions", "on_idle", "validation", "repository",
    "inbox",
))  # fmt: skip
"""What may stand in the record of such a job. Neither act asks for any of it, but for the id, the status and when it
was made, and a claim for the time limit."""

_NEEDED = FIXED | {"number"}

_NAMELESS = urandom(16).hex()
"""The id of the one that is decided for. Nobody can have written it into a job."""


class _Decided:
    """An act that was decided for one job, and for how long the same is said of others."""

    __slots__ = ("_begins_ms", "_boot_ms", "_ends_ms", "act", "moment", "words")

    def __init__(self, act: Act | Request, moment: Moment) -> None:
        self.act, self.moment = act, moment
        self._begins_ms, self._boot_ms = moment.wall_ms, moment.boot_ms
        self._ends_ms = min(moment.wall_ms + _MOMENT_MS, (moment.wall_ms // 1000 + 1) * 1000)
        self.words: _Words | None = None
        """Found when there is another: most acts stand alone."""

    def stands_for(self, act: Act | Request, moment: Moment) -> bool:
        return (
            self._begins_ms <= moment.wall_ms < self._ends_ms
            and 0 <= moment.boot_ms - self._boot_ms < _MOMENT_MS  # somebody may have set the other clock
            and (act is self.act or act == self.act)
        )


class _Words:
    """What an act says of a job without a name, with what was said of it before."""

    __slots__ = ("_lines", "_values", "after", "changed", "end", "fields", "said", "text")

    def __init__(self, nameless: Job, act: Act, moment: Moment, said: Json) -> None:
        change = act(nameless, moment)
        assert change.before is nameless, "its fields are all that it changed"
        self.after, self.fields, self.changed = change.job, change.fields, changed_fields(nameless, change)
        self.said = {**said, **self.changed}
        self.text = as_text(self.said)[1:]
        self._lines = as_text(change.lines).split(_NAMELESS)
        self._values = changing_values(row_of(change.job, None, {}, ""))
        self._values["fields"] = as_text(self.changed)
        self._values["tells"] = change.job.last_seq != nameless.last_seq
        self.end: _Decided | None = None
        """How a job of which this was said has ended."""

    def values(self, job_id: str, number: int, record: str) -> dict[str, Any]:
        """What is bound to the statements that write it."""
        return {**self._values, "job_id": job_id, "number": number, "record": record, "lines": job_id.join(self._lines)}


class _SaidRow(Row):
    """One that nobody decided for: what it was before, and by which words it came to be."""

    __slots__ = ("before", "by")

    def __init__(self, fields: Json, before: str, prompt: str, root: str | None, by: _Words) -> None:
        own = {"prompt": prompt, "topic_prefix": TOPICS + fields["job_id"]}
        self.job = Job.of({**by.after.__dict__, **fields, **by.fields, **own})
        self.fields, self.prompt, self.root = {**fields, **by.changed}, prompt, root
        self.before, self.by = before, by
        self.record = before + by.text


class Burst:
    """The last claim that was decided, and how jobs that were claimed by the same words end."""

    def __init__(self) -> None:
        self._claim: _Decided | None = None
        self._timeout_sec = 0

    def claim_decided(self, job: Job, request: Request, moment: Moment) -> None:
        if request.lease_seconds is None or request.lease_seconds >= _LEAST_LEASE:
            self._claim, self._timeout_sec = _Decided(request, moment), int(job.timeout_sec)  # not True

    def claimed_again(
        self, record: str, prompt: str, root: str | None, request: Request, moment: Moment, store: str
    ) -> tuple[Row, dict[str, Any]] | None:
        """The row after the same claim, and what is to be bound; None when it has to be decided."""
        claim = self._claim
        if claim is None or not claim.stands_for(request, moment):
            return None
        fields = loaded(record, store)
        begun = fields.get("created_at")
        head = f'{{"job_id":"{fields.get("job_id")}","status":"pending","created_at":"{begun}","updated_at":"{begun}",'
        if not record.startswith(head) or record[-1] != "}" or not self._is_such(fields, request, claim.moment):
            return None
        words = claim.words
        if words is None:
            decide = partial(_claim, request=request)
            words = claim.words = _Words(_nameless(self._timeout_sec), decide, claim.moment, {})
        # What is said stands behind all that is kept, without what it puts another word for.
        before = f'{{"job_id":"{fields["job_id"]}","created_at":"{begun}",{record[len(head) : -1]},'
        row = _SaidRow(fields, before, prompt, root, words)
        return row, words.values(row.job.job_id, row.job.number, row.record)

    def end_decided(self, row: Row, act: Act, moment: Moment) -> None:
        if isinstance(row, _SaidRow) and _is_bare(act):
            row.by.end = _Decided(act, moment)

    def ended_again(self, row: Row, act: Act, moment: Moment) -> tuple[Job, dict[str, Any]] | None:
        """The job after the same end, and what is to be bound; None when it has to be decided."""
        if not isinstance(row, _SaidRow):
            return None
        end, job = row.by.end, row.job
        if end is None or not end.stands_for(act, moment) or job.created_at > end.moment.second:
            return None
        words = end.words = end.words or _Words(row.by.after, act, end.moment, row.by.said)
        values = words.values(job.job_id, job.number, row.before + words.text)
        return Job.of({**job.__dict__, **words.fields}), values

    def _is_such(self, fields: Json, request: Request, moment: Moment) -> bool:
        """Whether the claim says the same of the job of this record, if that is as it was registered."""
        return (
            _NEEDED <= fields.keys() <= UNASKED
            and fields["status"] == PENDING
            and fields["agent_session"] == request.label
            and type(fields["number"]) is int
            and fields["number"] <= MOST
            and fields.get("timeout_sec", _USUAL_TIMEOUT) == self._timeout_sec
            and fields["created_at"] < moment.second
        )


def _claim(job: Job, moment: Moment, request: Request) -> Change:
    return claimed(job, request, moment)


def _is_bare(act: Act) -> bool:
    """Whether it is a completion with nothing more to say: other acts may ask a job for anything."""
    said: Json = getattr(act, "keywords", {})
    return getattr(act, "func", None) is complete and said.get("result") is None and said.get("told") is None


def _nameless(timeout_sec: int) -> Job:
    own = {"job_id": _NAMELESS, "status": PENDING, "created_at": "", "updated_at": "", "timeout_sec": timeout_sec}
    return Job.of({**NEW, **own})


def is_plain(job: Job) -> bool:
    """Most have no key, come after nobody and are held by no session: their rows concern no other."""
    return job.exclusive is None and not job.after and job.claimant is None
