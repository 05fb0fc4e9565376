"""Claims and ends in one trip: decided here, and done by the server if everything is as it was thought to be.

In all other cases an act is done as any other: it asks, decides and writes, which takes two trips.
"""

from __future__ import annotations

from time import monotonic_ns

import psycopg

from mam.jobs.change import Change
from mam.jobs.status import RUNNING
from mam.stores.postgres.acting import STATEMENTS, Acting, AnswerLost
from mam.stores.postgres.fresh import FreshClaims
from mam.stores.postgres.line import Line
from mam.stores.postgres.rare import FAILED
from mam.stores.postgres.server_clock import moment_at
from mam.stores.sql.encoding import ended_bytes
from mam.stores.sql.rows import Row
from mam.stores.sql.store import SqlStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.clock import Moment
    from mam.jobs.record import Job
    from mam.stores.port import Act, Request
    from mam.stores.postgres.fresh import Named

_END, _FAIL = STATEMENTS["end job"], STATEMENTS["fail job"]


class OneTripStore(SqlStore):
    """The part of the store that tries it."""

    def __init__(self, acting: Acting, *, by_server: bool) -> None:
        super().__init__()
        self._acting = acting
        self._by_server = by_server
        """Whether the server's clock is the one that counts, and not one that was passed in."""
        self._ahead_ms: int | None = None
        """How far the server's clock is ahead of the one here that never jumps; None before anybody has looked."""
        self._fresh = FreshClaims()
        self._line = Line()

    def _guessed_moment(self) -> Moment | None:
        """The server's time as it must be by now; the server looks whether it is."""
        if self._ahead_ms is None or not self._by_server:
            return None
        return moment_at(monotonic_ns() // 1_000_000 + self._ahead_ms)

    # -- a job that nobody has touched yet --------------------------------------------------------------------------

    def claim(self, request: Request) -> Job | None:
        job = self._past_damage(self._claim_fresh, request)
        return super().claim(request) if job is None else job

    def _claim_fresh(self, request: Request) -> Job | None:
        """None when it has to be looked at before."""
        since = self._acting.last_xact
        if since is None:
            return None
        known = self._fresh.again(request, monotonic_ns())
        claim = known or self._decided(request)
        if claim is None:
            return None
        sent, token = claim
        try:
            found = self._acting.at_once(sent)
        except AnswerLost as lost:
            self._acting.end_conversation(lost.process)
            found = next(iter(self._rows("claimed", xact=since, token=token.decode())), None)
        if known is None or found is None:
            self._fresh.tried(well=found is not None)
        if found is None:
            self._line.forget()
            return None
        record, prompt, root, now, self._acting.last_xact = found
        self._ahead_ms = int(now * 1000) - monotonic_ns() // 1_000_000
        row = Row(record, prompt, root, self.address)
        if row.job.status is not RUNNING or row.job.attempt != 1:
            return None  # while the answer was lost, somebody has taken it away again
        self._remember(row)
        return row.job

    def _decided(self, request: Request) -> Named | None:
        """Such a claim; None where it is not to be tried."""
        if request.agent_id is not None or request.job_id is not None or not self._fresh.worth_trying():
            return None
        line = self._line.beginning(request.label, self._fresh.times_said(), self._acting.line_of)
        moment = self._guessed_moment()
        try:
            return None if moment is None else self._fresh.decided(request, moment, monotonic_ns(), line)
        except psycopg.DataError:
            return None  # the longer way says what is wrong with it

    # -- ending what this store has claimed -------------------------------------------------------------------------

    def change(self, job_id: str, act: Act) -> Job:
        """Most jobs end as this store left them."""
        row, moment = self._known.get(job_id), self._guessed_moment()
        if row is None or moment is None or row.job.status is not RUNNING:
            return super().change(job_id, act)
        if row.job.exclusive or row.job.claimant or row.root:
            return super().change(job_id, act)
        try:
            change = act(row.job, moment)
        except Exception:
            return super().change(job_id, act)  # the job may be another by now: only the real one is complained about
        if not change.job.status.ended:
            return super().change(job_id, act)
        return self._end(row, moment, change, act)

    def _end(self, row: Row, moment: Moment, change: Change, act: Act) -> Job:
        job, since = change.job, self._acting.last_xact
        if since is None:
            return super().change(job.job_id, act)
        record, fields, lines = ended_bytes(row, change)
        values = {
            "job_id": job.job_id.encode(), "status": job.status.encode(), "before": row.record.encode(),
            "record": record, "fields": fields, "lines": lines, "now": b"%.3f" % (moment.wall_ms / 1000),
        }  # fmt: skip
        end = _FAIL if job.status in FAILED else _END
        try:
            # As they are: an id and a status have no NUL, and JSON escapes it.
            if self._acting.at_once((end, end.chosen(values))) is not None:
                self._known.pop(job.job_id, None)
                return job
        except AnswerLost:
            entry = {"xact": since, "job_id": job.job_id, "fields": fields.decode(), "lines": lines.decode()}
            act = self._unless_ended(act, job, entry)
        # Whoever holds the row now may be the trip whose answer was lost; it is waited for.
        return super().change(job.job_id, act)

    def _unless_ended(self, act: Act, ended: Job, entry: dict[str, Any]) -> Act:
        """The same act, for a job that may have ended by it already."""

        def again(found: Job, now: Moment) -> Change:
            if found.status.ended and self._value("has ended", **entry):
                return Change(job=ended)
            return act(found, now)

        return again
