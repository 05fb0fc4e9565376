"""Watching one attempt while its agent runs: the lease is renewed, time is kept, and orders from outside are obeyed.

What ends an attempt early is decided here, once, and told to the keeper, which ends the whole tree. The lease is
renewed by the worker, never by the agent; a worker that cannot renew by two thirds of it ends its agent before somebody
else may claim the job, and a keeper that hears nothing for that long does the same.
"""

from __future__ import annotations

import time
from threading import Event

from mam.errors import ClaimLost, MamError, StoreUnavailable, UnknownJob
from mam.work.messages import Output, Started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.work.holding import Holding
    from mam.work.messages import LastMessage
    from mam.work.runner import Run

LEASE_SECONDS = 60.0
GRACE_SECONDS = 5.0
LINGER_SECONDS = 60.0
"""How long an agent that said that it is done may take to go."""

REVOKED, TIMED_OUT, SILENT, STOPPING, LINGERED = "revoked", "timed out", "silent", "stopping", "lingered"


class Watching:
    """One attempt's clock. Its own thread calls `until_ended`; any other may call `news`, `sign` and `stop`."""

    def __init__(self, holding: Holding, job: Job, lease_seconds: float, grace_seconds: float) -> None:
        self._holding = holding
        self._job = job
        self._lease = lease_seconds
        self._grace = grace_seconds
        now = time.monotonic()
        self._begun = self._heard = self._renewed = now
        self._next_renewal = now + lease_seconds / 3
        self._quiet_told = False
        self._said_at: float | None = None
        self._run: Run | None = None
        self._wake = Event()
        self.ended_because: str | None = None
        """Why the attempt was ended from outside; None when it ended by itself."""

    # -- from other threads ----------------------------------------------------------------------------------------

    def sign(self) -> None:
        """The agent spoke through its door."""
        self._heard = time.monotonic()
        self._quiet_told = False

    def news(self, job: Job | None) -> None:
        """The record changed; None when it is gone."""
        if job is None or job.status != "running" or job.attempt != self._job.attempt:
            self.stop(REVOKED)
        elif job.said is not None and self._said_at is None:
            self._said_at = time.monotonic()
        self._wake.set()

    def stop(self, why: str) -> None:
        """The first reason counts."""
        if self.ended_because is None:
            self.ended_because = why
            if self._run is not None:
                self._run.stop(self._grace, why)
        self._wake.set()

    # -- the attempt's own thread ----------------------------------------------------------------------------------

    def until_ended(self, run: Run) -> LastMessage:
        """Until the last process of the tree is gone."""
        self.attach(run)
        while run.ended is None:
            message = run.wait(max(0.0, self._tick() - time.monotonic()))
            if isinstance(message, Output | Started):
                self.sign()
        return run.ended

    def attach(self, run: Run) -> None:
        """Also for the validation script, which is held and stopped like the agent."""
        self._run = run
        if self.ended_because is not None:
            run.stop(self._grace, self.ended_because)
        elif not self._lost():
            run.hold(self._hold_seconds())

    def until_said(self) -> None:
        """For an agent that is no process of ours: until it says something, or the attempt is over."""
        while self.ended_because is None and self._said_at is None:
            self._wake.wait(max(0.0, self._tick() - time.monotonic()))
            self._wake.clear()

    # -- time ------------------------------------------------------------------------------------------------------

    def _tick(self) -> float:
        """Does what is due, and says when to look again."""
        now = time.monotonic()
        if self.ended_because is not None:
            return now + 1.0
        if now >= self._next_renewal:
            self._renew()
        self._keep_time(now)
        return min(self._next_renewal, *self._deadlines())

    def _deadlines(self) -> list[float]:
        limits = [self._next_renewal]
        if self._job.timeout_sec:
            limits.append(self._begun + self._job.timeout_sec)
        if self._job.idle_timeout_sec and not self._quiet_told:
            limits.append(self._heard + self._job.idle_timeout_sec)
        if self._said_at is not None and self._run is not None:
            limits.append(self._said_at + LINGER_SECONDS)
        return limits

    def _keep_time(self, now: float) -> None:
        job = self._job
        if job.timeout_sec and now >= self._begun + job.timeout_sec:
            self.stop(TIMED_OUT)
        elif self._said_at is not None and self._run is not None and now >= self._said_at + LINGER_SECONDS:
            self.stop(LINGERED)
        elif job.idle_timeout_sec and not self._quiet_told and now >= self._heard + job.idle_timeout_sec:
            self._gone_quiet()

    def _gone_quiet(self) -> None:
        self._quiet_told = True
        if self._job.on_idle == "stop":
            self.stop(SILENT)
            return
        try:
            self._holding.quiet(self._job.idle_timeout_sec)
        except MamError:
            return  # whatever it is, the next renewal will meet it too

    def _renew(self) -> None:
        try:
            self._holding.renew(self._lease, heard=self._heard > self._renewed)
        except (ClaimLost, UnknownJob):
            self.stop(REVOKED)
            return
        except StoreUnavailable:
            self._next_renewal = time.monotonic() + min(2.0, self._lease / 30)
            if self._lost():
                self.stop(REVOKED)
            return
        self._renewed = time.monotonic()
        self._next_renewal = self._renewed + self._lease / 3
        if self._run is not None:
            self._run.hold(self._hold_seconds())

    def _lost(self) -> bool:
        return time.monotonic() >= self._renewed + self._lease * 2 / 3

    def _hold_seconds(self) -> float:
        return max(0.0, self._renewed + self._lease * 2 / 3 - time.monotonic())
