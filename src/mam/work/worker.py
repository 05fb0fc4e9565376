"""The worker: claims jobs and runs each attempt in a thread of its own.

It keeps no state that matters. If it is killed, its keepers end its agents, its jobs return when their leases expire,
and everything written is in the store.
"""

from __future__ import annotations

import os
import time
from queue import Empty, SimpleQueue
from threading import Thread, Timer

from mam.errors import MamError, UnknownJob
from mam.jobs.status import Status
from mam.jobs.workers import STOP
from mam.stores.interest import Interest
from mam.stores.port import ClaimRequest
from mam.util.frozen import Frozen
from mam.work.claim import STORE_UNREACHABLE
from mam.work.journal_follower import JournalFollower
from mam.work.presence import Presence
from mam.work.supervision import REVOKED, STOPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.bus.background_relay import WorkerRelays
    from mam.jobs.record import Job, Json
    from mam.registry import AuditSink
    from mam.work.attempt import Attempt
    from mam.work.context import WorkerContext
    from mam.work.live.session import LiveSession

_AWAY_SECONDS = 1.0
DRAIN, DRAIN_NOW = "drain", "now"
"""When a worker stops on its own: when no job of its labels is left, or when none can be claimed now."""
OWN_PAUSE_SECONDS = 0.5
"""How long the audit log may lag behind what the worker wrote."""

SHUT_SECONDS = 1.0
"""How often the worker checks again a live session that cannot take a job."""


STILL_LEFT = "no job can be claimed now; the worker waits for those that wait, are paused or run elsewhere"


class WorkerOptions(Frozen):
    """What a worker is to do."""

    labels: tuple[str, ...]
    owner: str
    concurrency: int = 1
    job_id: str | None = None
    """Only this job, until it has ended."""
    most: int | None = None
    """Stop after this many jobs; None for no limit."""
    drain: str | None = None
    """DRAIN or DRAIN_NOW; None to run until it is stopped."""


class Worker:
    def __init__(
        self,
        context: WorkerContext,
        options: WorkerOptions,
        shadow: AuditSink | None = None,
        relays: WorkerRelays | None = None,
    ) -> None:
        self._context = context
        self._relays = relays
        self._options = options
        self._wakes: SimpleQueue[None] = SimpleQueue()
        """A signal handler may put a wake-up at any moment; SimpleQueue is the only safe way."""
        self._may_claim = True
        """Whether a claim may succeed that failed before."""
        self._attempts: set[Attempt] = set()
        self._taken = 0
        self._stopping = False
        self._next_label = 0
        self._host = os.uname().nodename
        interest = Interest(
            labels=options.labels, is_free=self._is_free, holds=self._follows, own_pause=self._own_pause
        )
        self._presence = Presence(context, options, self._obey)
        self._follower = JournalFollower(context.registry.store, shadow, self._on_change, self._is_free, interest)

    @property
    def taken(self) -> int:
        return self._taken

    def run(self) -> None:
        """Runs until it is done or stopped, and then until the last attempt has ended."""
        self._follower.start()
        self._presence.start()
        try:
            while not self._is_done():
                self._fill()
                self._rest()
        finally:
            self._wait_for_all()
            self._presence.stop()
            self._follower.stop()
            if self._relays is not None:
                self._relays.stop()

    def stop(self) -> None:
        """Claims no more; running jobs finish. Safe in a signal handler."""
        self._stopping = True
        self._wakes.put(None)

    def hand_back(self) -> None:
        """Ends running agents and hands their jobs back. Safe in a signal handler."""
        self._stopping = self._context.is_leaving = True
        self._wakes.put(None)

    def _obey(self, asked: str) -> None:
        if asked == STOP:
            self._context.say_once("asked to stop (`mam workers stop`): releasing the running jobs")
            self.hand_back()
        else:
            self._context.say_once("asked to drain (`mam workers drain`): finishing the running jobs")
            self.stop()

    # -- claiming --------------------------------------------------------------------------------------------------

    def _free(self) -> int:
        if self._stopping:
            return 0
        left = self._options.concurrency - (len(self._attempts) - self._parked())
        return left if self._options.most is None else min(left, self._options.most - self._taken)

    def _parked(self) -> int:
        """Jobs that wait for a person leave their places to others; a live session has only one."""
        if self._context.session is not None:
            return 0
        asking = sum(attempt.supervision.asks for attempt in list(self._attempts))
        return min(asking, self._context.parked_limit)

    def _is_free(self) -> bool:
        return self._free() > 0

    def _is_done(self) -> bool:
        if self._stopping or (self._options.most is not None and self._taken >= self._options.most):
            return True
        if self._options.job_id is not None and not self._attempts:
            return self._has_ended(self._options.job_id)
        if self._options.drain is None or self._attempts:
            return False
        session = self._context.session
        if session is not None and session.lost is not None:
            return True
        if self._may_claim or (session is not None and session.unready_reason is not None):
            return False
        return self._options.drain == DRAIN_NOW or not self._waits_for_jobs()

    def _fill(self) -> None:
        while self._may_claim and self._free() > 0 and not self._context.backoff.remaining():
            self._may_claim = False
            try:
                job = self._claim()
            except STORE_UNREACHABLE as error:
                self._say_unreachable(error)
                continue
            self._context.report_store(None)
            if job is not None:
                self._may_claim = True
                self._begin(job)

    def _claim(self) -> Job | None:
        """Labels take turns, so that a long queue of one label does not starve the others."""
        labels = self._options.labels
        requests = [self._request(label) for label in (*labels[self._next_label :], *labels[: self._next_label])]
        session, registry = self._context.session, self._context.registry
        if session is None:
            job = next((job for request in requests if (job := registry.claim(request)) is not None), None)
        else:
            job = self._claim_for_session(session, requests)
        if job is not None and job.agent_session in labels:
            self._next_label = (labels.index(job.agent_session) + 1) % len(labels)
        return job

    def _request(self, label: str) -> ClaimRequest:
        return ClaimRequest(
            label=label,
            owner=self._options.owner,
            lease_seconds=self._context.lease_seconds,
            supervised=True,
            host=self._host,
            job_id=self._options.job_id,
        )

    def _claim_for_session(self, session: LiveSession, requests: list[ClaimRequest]) -> Job | None:
        job = session.claim(self._context.registry, requests)
        if session.unready_reason is not None:
            # The journal does not show that a person has answered or stopped typing.
            self._context.say_once(f"waiting: {session.unready_reason}")
            timer = Timer(SHUT_SECONDS, self._try_again)
            timer.daemon = True
            timer.start()
        return job

    def _try_again(self) -> None:
        self._may_claim = True
        self._wakes.put(None)

    def _begin(self, job: Job) -> None:
        if self._relays is not None:
            self._relays.serve(job)
        attempt = self._context.attempt(job)
        self._taken += 1
        self._attempts.add(attempt)
        self._context.say(job, f"claimed ({job.agent})")
        Thread(target=self._serve, args=(attempt,), name=f"mam-{job.job_id[:8]}", daemon=True).start()

    def _serve(self, attempt: Attempt) -> None:
        try:
            attempt.run()
        finally:
            self._attempts.discard(attempt)
            self._try_again()

    # -- waiting ---------------------------------------------------------------------------------------------------

    def _rest(self) -> None:
        """Every event after this check puts a wake-up into the queue, so none is missed."""
        if self._may_claim and self._free() > 0:
            if left := self._context.backoff.remaining():
                self._sleep(left)
        elif not self._is_done():
            self._wakes.get()

    def _sleep(self, seconds: float) -> None:
        try:
            self._wakes.get(timeout=seconds)
        except Empty:
            return

    def _wait_for_all(self) -> None:
        while self._attempts:
            if self._context.is_leaving:
                for attempt in list(self._attempts):
                    attempt.supervision.stop(STOPPING)
            self._wakes.get()

    def _on_change(self, changes: dict[str, Json | None]) -> None:
        for attempt in list(self._attempts):
            job_id = attempt.job.job_id
            if job_id not in changes:
                continue
            if _has_ended(changes[job_id]):
                attempt.supervision.stop(REVOKED)
            elif _concerns_holder(changes[job_id], attempt.job):
                attempt.supervision.record_changed(self._read_job(job_id))
        self._may_claim = True
        self._wakes.put(None)
        if self._relays is not None:
            self._relays.wake()

    def _follows(self, job_id: str) -> bool:
        """Whether acts on this job wake the worker: it holds the job, or a relay sends the events of all jobs."""
        if self._relays is not None and self._relays.is_sending:
            return True
        return job_id == self._options.job_id or any(job_id == held.job.job_id for held in list(self._attempts))

    def _own_pause(self) -> float:
        """The worker knows what it wrote itself. A relay has to read it at once, the audit log a while later."""
        return 0.0 if self._relays is not None and self._relays.is_sending else OWN_PAUSE_SECONDS

    def _read_job(self, job_id: str) -> Job | None:
        try:
            return self._context.registry.store.get(job_id)
        except UnknownJob:
            return None

    def _waits_for_jobs(self) -> bool:
        """Whether a job of the labels is left that may become claimable: it waits, is paused, or runs elsewhere."""
        try:
            is_left = any(True for _ in self._context.registry.open_jobs(self._options.labels))
        except STORE_UNREACHABLE as error:
            self._say_unreachable(error)
            return True
        if is_left:
            self._context.say_once(STILL_LEFT)
        return is_left

    def _has_ended(self, job_id: str) -> bool:
        try:
            job = self._read_job(job_id)
        except STORE_UNREACHABLE as error:
            self._say_unreachable(error)
            return False
        return job is None or job.status.ended

    def _say_unreachable(self, error: MamError) -> None:
        """The store is unreachable: the worker retries, and running jobs continue."""
        self._context.say_unreachable(error)
        time.sleep(_AWAY_SECONDS)
        self._may_claim = True


def _concerns_holder(changes: Json | None, held: Job) -> bool:
    """Whether these changes may be more than what the worker itself writes: its claim, a start, a renewal, progress."""
    if changes is None or "questions" in changes:
        return True
    own = {"status": held.status, "attempt": held.attempt, "claim_id": held.claim_id, "said": None}
    return any(name in changes and changes[name] != value for name, value in own.items())


def _has_ended(changes: Json | None) -> bool:
    """An ended job stays ended, so the worker need not read it. A read would wait for the process that has just ended
    it."""
    return changes is not None and "status" in changes and Status(changes["status"]).ended
