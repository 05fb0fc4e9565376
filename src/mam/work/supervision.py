"""Supervises one attempt from its claim to its end: renews the lease, enforces timeouts, and stops the agent on
request.

It has a thread of its own, since the attempt's thread may be busy for longer than a lease, with a large checkout or a
long check. The worker renews the lease, never the agent. A worker that cannot renew within two thirds of the lease ends
its agent, before another worker may claim the job. A keeper that gets no keep-alive for that long does the same.
"""

from __future__ import annotations

import time
from math import inf
from threading import Event, Thread

from mam.errors import ClaimLost, MamError, UnknownJob
from mam.jobs.lease import keep_alive_seconds, renewal_seconds
from mam.jobs.question import count_open
from mam.work.process.messages import Output, Started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from mam.jobs.record import Job
    from mam.work.claim import Claim
    from mam.work.process.messages import LastMessage
    from mam.work.process.runner import Run

GRACE_SECONDS = 5.0
LINGER_SECONDS = 60.0
"""How long an agent that has reported its outcome may take to exit."""

REVOKED, CUT_OFF, TIMED_OUT, SILENT, STOPPING = "revoked", "cut off", "timed out", "silent", "stopping"
"""The claim is gone; it could not be renewed; the timeout has passed; the agent was silent; the worker has to leave."""
LINGERED = "lingered"
HOPELESS = "hopeless"
"""The agent reported its outcome but did not exit; the agent waits for an answer that will not come."""

_LOOK_SECONDS = 5.0
"""How often a run that another thread has stopped is checked, since its keeper may not obey."""


class Supervision:
    """Supervises inside the `with`. Any thread may call `record_changed`, `note_activity` and `stop`."""

    def __init__(
        self,
        claim: Claim,
        job: Job,
        lease_seconds: float,
        grace_seconds: float,
        report_store: Callable[[MamError | OSError | None], None] = lambda _error: None,
    ) -> None:
        """`report_store` is called with each failure of a renewal, and with None after a success."""
        self._claim = claim
        self._job = job
        self._lease = lease_seconds
        self._grace = grace_seconds
        self._report_store = report_store
        now = time.monotonic()
        self._begun = self._active_at = self._renewed = now
        self._next_renewal = now + renewal_seconds(lease_seconds)
        self._quiet_reported = False
        self._reported_at: float | None = None
        self._asks_since: float | None = None
        self._asked_seconds = 0.0
        """How long it has waited for answers; the timeout does not count this time."""
        self._run: Run | None = None
        self._agent_ended = self._over = False
        self._wake = Event()
        self._reported = Event()
        self._thread = Thread(target=self._watch, name=f"mam-watch-{job.job_id[:8]}", daemon=True)
        self.ended_because: str | None = None
        """Why mam ended the attempt; None if the agent ended on its own."""
        self.lingered = False
        """Whether mam had to end the agent after it had reported its outcome, which is not a failure."""
        self.waits_for_children: Callable[[], bool] = lambda: False
        """Whether the agent waits at its door for its children; it is then not quiet."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the record may have changed, and when the attempt is stopped."""
        self.waits_for_person = False
        """Whether the agent waits for a person, which may take any time; it is then not quiet."""
        self.may_have_reported = False
        """Whether the agent may have reported an outcome. It can also report directly to the store, which shows later.
        """

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Ends before the end is written: a later renewal would be rejected and leave a line in the audit log."""
        self._over = True
        self._wake.set()
        self._thread.join()

    # -- from other threads ----------------------------------------------------------------------------------------

    def note_report(self) -> None:
        """The agent used its door."""
        self.may_have_reported = True
        self.note_activity()

    def note_activity(self) -> None:
        """The agent used its door or printed something."""
        self._active_at = time.monotonic()
        if self._quiet_reported:
            self._quiet_reported = False
            self._wake.set()

    def record_changed(self, job: Job | None) -> None:
        """`job` is None if the record is gone."""
        held = self._job
        if job is None or job.status != "running" or (job.attempt, job.claim_id) != (held.attempt, held.claim_id):
            self.stop(REVOKED)
            return
        self._note_questions(job)
        self.on_change()
        if job.said is not None and self._reported_at is None:
            self._reported_at = time.monotonic()
            self.may_have_reported = True
            self._reported.set()
            self._wake.set()

    @property
    def asks(self) -> bool:
        """Whether a question of this attempt is open; its clocks then stand still."""
        return self._asks_since is not None

    def _note_questions(self, job: Job) -> None:
        now, asks = time.monotonic(), count_open(job) > 0
        if asks == self.asks:
            return
        if self._asks_since is not None:
            self._asked_seconds += now - self._asks_since
            self._active_at = now
        self._asks_since = now if asks else None
        self._wake.set()

    def stop(self, why: str) -> None:
        """The first reason counts."""
        if self.ended_because is None:
            self.ended_because = why
            if self._run is not None:
                self._run.stop(self._grace, why)
        self._reported.set()
        self._wake.set()
        self.on_change()

    # -- the attempt's own thread ----------------------------------------------------------------------------------

    def ends_within(self, run: Run, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        while run.ended is None and (left := ends - time.monotonic()) > 0:
            self._wait_message(run, left)
        return run.ended is not None

    def wait_until_ended(self, run: Run) -> LastMessage:
        """Waits until the last process of the tree is gone. The run must be attached."""
        while run.ended is None:
            self._wait_message(run, _LOOK_SECONDS)
        self._agent_ended = True
        return run.ended

    def _wait_message(self, run: Run, seconds: float) -> None:
        if isinstance(run.wait(seconds), Output | Started):
            self.note_activity()

    def attach(self, run: Run) -> None:
        """Also used for the validation script, which is kept alive and stopped like the agent."""
        self._run = run
        run.keep_alive(self.keep_alive_seconds())
        if self.ended_because is not None:
            run.stop(self._grace, self.ended_because)

    def reported_within(self, seconds: float) -> bool:
        """Whether, within that time, the agent reported an outcome or the attempt was stopped."""
        return self._reported.wait(seconds)

    def wait_until_reported(self) -> None:
        """For a person, who has no process here: waits until an outcome is reported or the attempt is stopped."""
        self._reported.wait()
        self._agent_ended = True

    # -- time ------------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Renews also while the agent is being ended: no other worker may start before it is gone."""
        while not self._over:
            wakes_at = self._tick()
            self._wake.wait(None if wakes_at == inf else max(0.0, wakes_at - time.monotonic()))
            self._wake.clear()

    def _tick(self) -> float:
        """Does what is due; returns when to wake up again."""
        if time.monotonic() >= self._next_renewal:
            self._renew()
        if self.ended_because is None:
            self._check_deadlines(time.monotonic())
        return min(self._next_renewal, *self._deadlines())

    def _deadlines(self) -> tuple[float, float, float]:
        """The times of the timeout, of the quiet threshold, and of the end of lingering."""
        job, over = self._job, self._agent_ended
        if self.ended_because is not None or self.asks:
            return inf, inf, inf
        late = self._begun + job.timeout_sec + self._asked_seconds if job.timeout_sec else inf
        silent = not (over or self._quiet_reported or self.waits_for_person)
        quiet = self._active_at + job.idle_timeout_sec if job.idle_timeout_sec and silent else inf
        lingers = self._reported_at is not None and self._run is not None and not (over or self.lingered)
        return late, quiet, (self._reported_at or 0.0) + LINGER_SECONDS if lingers else inf

    def _check_deadlines(self, now: float) -> None:
        late, quiet, lingers = self._deadlines()
        if now >= late:
            self.stop(TIMED_OUT)
        elif now >= lingers and self._run is not None:
            self.lingered = True
            self._run.stop(self._grace, LINGERED)
        elif now >= quiet and self.waits_for_children():
            self.note_activity()
        elif now >= quiet:
            self._handle_quiet()

    def _handle_quiet(self) -> None:
        self._quiet_reported = True
        if self._job.on_idle == "stop":
            self.stop(SILENT)
            return
        try:
            self._claim.quiet(self._job.idle_timeout_sec)
        except MamError:
            return  # the next renewal will meet the same error

    def _renew(self) -> None:
        try:
            job = self._claim.renew(self._lease, heard=self._active_at > self._renewed)
        except (ClaimLost, UnknownJob):
            self._next_renewal = inf
            self.stop(REVOKED)
            return
        except (MamError, OSError) as error:  # the store is unreachable or the record damaged; both may be repaired
            self._report_store(error)
            self._next_renewal = time.monotonic() + min(2.0, self._lease / 30)
            if self.keep_alive_seconds() == 0:
                self.stop(CUT_OFF)
            return
        self._report_store(None)
        self._renewed = time.monotonic()
        self._next_renewal = self._renewed + renewal_seconds(self._lease)
        if self._run is not None:
            self._run.keep_alive(self.keep_alive_seconds())
        self.record_changed(job)

    def keep_alive_seconds(self) -> float:
        """How long the agent may run without another renewal."""
        return max(0.0, self._renewed + keep_alive_seconds(self._lease) - time.monotonic())
