"""One attempt at one job, from the claim to its end: what is the same for all agents.

`headless_attempt.py` runs an agent, `live/attempt.py` gives the job to a live session. This module has
the earlier attempts, the changes in the directory, the checks, and the write of the verdict.

An attempt never stops the worker. Every error becomes the job's reason; what cannot be written is left to the lease.
"""

from __future__ import annotations

import os
import time

from mam.errors import (
    ClaimLost,
    FetchFailed,
    MachineUnfit,
    MamError,
    StoreMissing,
    StoreUnavailable,
    UnknownJob,
    WorkDirMissing,
)
from mam.jobs.resuming import carried
from mam.jobs.status import CANCELLED, COMPLETED
from mam.jobs.worker_acts import Ending
from mam.work import supervision
from mam.work.asking import at_limit
from mam.work.asking.at_limit import chosen, limit_draft
from mam.work.asking.denials import Denials
from mam.work.claim import STORE_UNREACHABLE, Claim, StartReporter
from mam.work.host_checks import describe_error, is_machine_error
from mam.work.process.pidfiles import recorded_processes
from mam.work.process.takeover import EarlierAttempts, end_earlier, end_orphans
from mam.work.state_dirs import private_prefix
from mam.work.supervision import Supervision
from mam.work.usage_limits import UsageLimits
from mam.work.validator import check
from mam.work.verdict import Finish, GiveUp, HandBack, HandBackUnstarted, Postpone, WaitForReset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    from mam.jobs.record import Job, Json
    from mam.work.asking.in_worker import WorkerAsker
    from mam.work.context import WorkerContext
    from mam.work.door.server import Door
    from mam.work.verdict import Verdict
    from mam.work.workdir import WorkDir

    P = ParamSpec("P")
    T = TypeVar("T")

_RETRY_SECONDS = 0.5


class Attempt:
    def __init__(self, context: WorkerContext, job: Job) -> None:
        self.job = job
        self._context = context
        self._claim = Claim(context.registry, job)
        self.supervision = Supervision(
            self._claim, job, context.lease_seconds, context.grace_seconds, context.report_store
        )
        self._start_reporter = StartReporter(self._claim)
        self._limits = UsageLimits(context.registry, self._claim, job)
        self._private = private_prefix(context.work_directory, job.job_id, job.attempt)
        host = os.uname().nodename
        self._begun: Json = {"attempt": job.attempt, "host": host, **carried(job, host)}
        """The `run` of the record, as far as it is known."""
        self._upload = context.uploader.upload(job, is_conversation=False)
        self._asker: WorkerAsker | None = None
        """Asks for the agent; None if it has no door."""

    def run(self) -> None:
        """Never raises."""
        try:
            with self.supervision:
                verdict = self._attempt()
                self._send_output()
            self._finish(verdict)
        except Exception as error:
            self._write(self._error_verdict(error))
        finally:
            self._context.uploader.forget(self._upload)
            self._clean_up()

    def _attempt(self) -> Verdict:
        raise NotImplementedError

    def _clean_up(self) -> None:
        """Runs at the end of every attempt."""

    def _finish(self, verdict: Verdict) -> None:
        self._write(verdict)

    def _error_verdict(self, error: Exception) -> Verdict:
        match error:
            case ClaimLost():
                return GiveUp()
            case WorkDirMissing() | StoreUnavailable() | StoreMissing():
                return Postpone(reason=str(error))
            case MachineUnfit():
                return HandBackUnstarted(reason=str(error.facts["why"]))
            case MamError():
                reason = str(error)
            case OSError() | MemoryError():
                if is_machine_error(error) and not self._start_reporter.has_started:
                    return HandBackUnstarted(reason=describe_error(error))
                reason = f"the worker's system: {describe_error(error)}"
            case _:
                reason = f"a bug in mam: {type(error).__name__}: {error}"
        return Finish(ending=Ending(run=self._begun, reason=reason, retryable=isinstance(error, FetchFailed)))

    # -- prepare -----------------------------------------------------------------------------------------------------

    def _end_earlier_attempts(self) -> None:
        """Ends processes of earlier attempts on this host. The record names those that could not be ended."""
        job, run = self.job, self.job.run or {}
        earlier = recorded_processes(job, self._context.work_directory) if job.attempt > 1 else []
        if not has_ended_run(job) and isinstance(run.get("process"), dict):
            earlier.append({**run["process"], "host": run.get("host")})
        find_orphans = EarlierAttempts(job_id=job.job_id, attempt=job.attempt, mark=self._context.mark).find_orphans
        left = [end_earlier(process, find_orphans) for process in earlier]
        if _may_have_left_processes(job):
            left.append(end_orphans(find_orphans))
        if problems := [problem for problem in left if problem is not None]:
            self._begun["earlier"] = problems[-1]

    def _note_before(self, workdir: WorkDir) -> None:
        from mam.work.git.changes import note_before

        changes = note_before(self.job, self._context.work_directory, workdir, self._private)
        if changes is not None:
            self._begun["changes"] = changes

    def _open_door(self, workdir: WorkDir) -> Door:
        report_start = self._start_reporter.report
        door = self._context.door(self.job, workdir.path, self.supervision.note_report, report_start)
        self.supervision.waits_for_children = lambda: door.waits > 0
        self._asker = door.asker
        self.supervision.on_change = door.asker.record_changed
        return door

    def _note_start(self) -> None:
        """The agent runs, so this machine can run agents."""
        self._start_reporter.agent_started(self._begun)
        self._context.backoff.reset()

    # -- changes -----------------------------------------------------------------------------------------------------

    def _note_after(self, run: Json, *, is_wip: bool) -> None:
        """Commits the worktree, and adds to the run what the job changed."""
        if "changes" in run:
            from mam.work.git.changes import note_after

            work_directory = self._context.work_directory
            run["changes"] = note_after(self.job, work_directory, run["changes"], self._private, is_wip=is_wip)
            self._store_diff(run)

    def _store_diff(self, run: Json) -> None:
        """Copies the diff into the store, for readers on other hosts; this host can make it again."""
        from mam.work.git.diffs import finished_diff

        diff = finished_diff(self.job.replace(run=run), self._upload.file_limit)
        if diff is not None:
            self._send(self._upload.put_diff, diff)

    def _commit_if_cancelled(self) -> None:
        """The claim is gone. The worktree of a cancelled job is committed; another worker may use that of any other."""
        try:
            now = self._claim.read()
        except MamError:
            return
        if now.status is CANCELLED and now.attempt == self.job.attempt:
            self._note_after(dict(self._begun), is_wip=True)

    # -- judge and check ---------------------------------------------------------------------------------------------

    def _at_limit(self, limit: WaitForReset) -> Verdict:
        """Waits for the reset, unless the settings say that a person decides. The agent is paused meanwhile."""
        if not (self._context.asks_at_limits and self.job.may_ask):
            return limit
        self._retry_while_unreachable(self._limits.pause_agent, limit)
        asker = self._context.asker(self.job)
        self.supervision.on_change = asker.record_changed
        draft = limit_draft(self.job.agent, limit, self._context.registry.store.clock.now())
        decision = asker.decide(draft, lambda: self.supervision.ended_because is not None)
        match chosen(decision):
            case None:
                return GiveUp() if self.supervision.ended_because == supervision.REVOKED else HandBack(run=limit.run)
            case at_limit.RETRY:
                self._limits.resume_now()
                return HandBack(run=limit.run)
            case at_limit.FAIL:
                return Finish(ending=Ending(run=limit.run, reason=f"usage_limit: {limit.text}"))
        return limit

    def _denials(self) -> Denials:
        return Denials() if self._asker is None else self._asker.denials

    def _stopped(self) -> Ending | None:
        if self.supervision.ended_because == supervision.TIMED_OUT:
            return Ending(run={}, reason=f"timed out after {self.job.timeout_sec} s")
        if self.supervision.ended_because == supervision.SILENT:
            return Ending(run={}, reason=f"silent for {self.job.idle_timeout_sec} s")
        return None

    def _check(self, workdir: WorkDir) -> Ending | None:
        """None if the check itself was interrupted, so that its result is unknown."""
        job, context = self.job, self._context
        if not job.expected_artifacts and job.validation is None:
            return Ending(run={})
        checks = check(job, workdir.path, context.guardian, self._private, context.mark, watcher=self.supervision)
        self._send(self._upload.put_artifacts, checks["artifacts"], workdir.path)
        if checks["problem"] is not None and self.supervision.ended_because is not None:
            return self._stopped()
        return Ending(run={}, checks=checks, reason=checks["problem"])

    def _send_output(self) -> None:
        self._context.uploader.forget(self._upload)
        self._send(self._upload.send, is_all=True)

    def _send(self, call: Callable[P, None], *args: P.args, **options: P.kwargs) -> None:
        """What cannot be stored for another reason than an outage is not worth a job."""
        try:
            self._retry_while_unreachable(call, *args, **options)
        except (MamError, OSError) as error:
            self._context.say(self.job, f"not stored for other hosts: {error}")

    # -- write -------------------------------------------------------------------------------------------------------

    def _write(self, verdict: Verdict) -> None:
        """A write that the store rejects is left to the lease."""
        try:
            message = self._retry_while_unreachable(self._write_or_give_up, verdict)
        except MamError as error:
            message = f"left to its lease: {error}"
        self._context.say(self.job, message)

    def _write_or_give_up(self, verdict: Verdict) -> str:
        try:
            return self._write_once(verdict)
        except ClaimLost:
            return self._what_became_of_it()

    def _write_once(self, verdict: Verdict) -> str:
        """Returns what the worker prints about it."""
        match verdict:
            case GiveUp():
                return self._what_became_of_it()
            case HandBack():
                self._claim.hand_back(verdict.run, self._start_reporter.unreported())
                return "released"
            case HandBackUnstarted():
                seconds = self._context.backoff.start()
                reason = f"{self._begun['host']} cannot run it now: {verdict.reason}"
                self._claim.hand_back(reason=reason)
                return f"released: {reason}; the next claim is in {seconds:.0f} s"
            case Postpone():
                self._claim.postpone(verdict.reason, verdict.seconds, verdict.waiting_for)
                return verdict.reason
            case WaitForReset():
                job = self._limits.wait_for_reset(verdict)
                return f"waits until {job.due_at}: {job.reason}"
            case Finish():
                return self._write_end(verdict)

    def _what_became_of_it(self) -> str:
        try:
            job = self._claim.read()
        except UnknownJob:
            return "given up: the job is gone"
        if job.status is CANCELLED:
            return described(job)
        return f"given up: it is {job.status}{'' if job.status.ended else f', attempt {job.attempt}'}"

    def _write_end(self, verdict: Finish) -> str:
        return described(self._claim.end(verdict.ending, self._start_reporter.unreported()))

    def _retry_while_unreachable(self, call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Retries while the store is unreachable, so that an outage does not cost an hour's work; the fence decides
        whether the claim still holds. A worker that has to leave retries for one lease at most."""
        ends = time.monotonic() + self._context.lease_seconds
        while True:
            try:
                result = call(*args, **options)
                self._context.report_store(None)
                return result
            except STORE_UNREACHABLE as error:
                if self._context.is_leaving and time.monotonic() >= ends:
                    raise
                self._context.say_unreachable(error)
                time.sleep(_RETRY_SECONDS)


def described(job: Job) -> str:
    """The status, with its reason if there is one."""
    has_reason = job.reason and job.reason != job.status and job.status is not COMPLETED
    return f"{job.status}: {job.reason}" if has_reason else str(job.status)


def _may_have_left_processes(job: Job) -> bool:
    """Whether the record does not say how some earlier attempt ended."""
    known = (job.run or {}).get("attempt") if has_ended_run(job) else 0
    return job.attempt - 1 > (known if type(known) is int else 0)


def has_ended_run(job: Job) -> bool:
    """Whether the record says how its last run ended, so that no worker will look for its processes."""
    return "exit_code" in (job.run or {})
