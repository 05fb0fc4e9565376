"""One attempt at one job, from the claim to its end: prepare, run, watch, check, finish.

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
from mam.jobs.resuming import carried, has_brief, resumable_conversation
from mam.jobs.status import CANCELLED, COMPLETED
from mam.jobs.worker_acts import Ending
from mam.util.state_dir import make_private
from mam.work import supervision
from mam.work.adapters.port import EXIT, SAID, Launch
from mam.work.agent_turn import AgentTurn
from mam.work.asking import at_limit
from mam.work.asking.at_limit import chosen, limit_draft
from mam.work.asking.denials import Denials
from mam.work.brief import brief
from mam.work.claim import STORE_UNREACHABLE, Claim, Reported, StartReporter
from mam.work.conversation_checks import check_conversation
from mam.work.host_checks import describe_error, is_machine_error
from mam.work.outcome import failure, result_text, run_facts, undecided_denial, was_interrupted
from mam.work.process.messages import Failed
from mam.work.process.pidfiles import recorded_processes
from mam.work.process.runner import Plan
from mam.work.process.takeover import EarlierAttempts, end_earlier, end_orphans
from mam.work.state_dirs import output_path, private_prefix
from mam.work.supervision import Supervision
from mam.work.usage_limits import UsageLimits
from mam.work.validator import check
from mam.work.verdict import Finish, GiveUp, HandBack, HandBackUnstarted, Postpone, WaitForReset
from mam.work.workdir import prepare_workdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    from mam.jobs.record import Job, Json
    from mam.work.asking.in_worker import WorkerAsker
    from mam.work.context import WorkerContext
    from mam.work.door.server import Door
    from mam.work.process.channel import Channel
    from mam.work.process.messages import LastMessage
    from mam.work.verdict import Verdict
    from mam.work.workdir import WorkDir

    P = ParamSpec("P")
    T = TypeVar("T")

SHORT_RUN_SECONDS = 0.1
"""A run that ends within this time is reported, start and end, in one write."""
_RETRY_SECONDS = 0.5
_BY_PERSON = Launch(argv=(), env={}, success=SAID)


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
        self._launch = _BY_PERSON
        self._upload = context.uploader.upload(job, is_conversation=False)
        self._last: LastMessage | None = None
        """How the agent's process ended; None if there was none."""
        self._turn: AgentTurn | None = None
        """The turn of a coding agent, whose output mam reads; None for other agents."""
        self._asker: WorkerAsker | None = None
        """Asks for the agent; None if it has no door."""
        self._keeper: Channel | None = None
        """The agent's keeper, once it is idle."""
        self._pid_line: int | None = None
        self._removes_worktree = False
        """Whether the worktree is removed once the end is written."""

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
            if self._keeper is not None:
                self._keeper.close()
            if self._pid_line is not None:
                self._context.pid_file.remove(self._pid_line, is_tree_gone=False)

    def _attempt(self) -> Verdict:
        self._end_earlier_attempts()
        workdir = self._prepare()
        text = brief(self.job, resumes=self._resumes_briefed(workdir))
        launch = self._context.adapter(self.job).launch(self.job, text, workdir, self._private)
        if launch is None:
            self._wait_for_person(text)
        else:
            self._run_agent(launch, workdir)
        return self._judge(workdir)

    def _resumes_briefed(self, workdir: WorkDir) -> bool:
        """Whether the agent continues a conversation in which it has read the brief."""
        is_resumed = resumable_conversation(self.job, self._begun["host"], workdir.path) is not None
        return is_resumed and has_brief(self.job)

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

    # -- prepare ---------------------------------------------------------------------------------------------------

    def _end_earlier_attempts(self) -> None:
        """Ends processes of earlier attempts on this host. The record names those that could not be ended."""
        job, run = self.job, self.job.run or {}
        earlier = recorded_processes(job, self._context.work_directory) if job.attempt > 1 else []
        if not _has_ended_run(job) and isinstance(run.get("process"), dict):
            earlier.append({**run["process"], "host": run.get("host")})
        find_orphans = EarlierAttempts(job_id=job.job_id, attempt=job.attempt, mark=self._context.mark).find_orphans
        left = [end_earlier(process, find_orphans) for process in earlier]
        if _may_have_left_processes(job):
            left.append(end_orphans(find_orphans))
        if problems := [problem for problem in left if problem is not None]:
            self._begun["earlier"] = problems[-1]

    def _prepare(self) -> WorkDir:
        context = self._context
        if not os.path.isdir(context.work_directory):  # a user may have removed it
            make_private(context.work_directory)
        workdir = prepare_workdir(self.job, context.work_directory, context.workdirs, context.repos)
        self._begun |= {"place": workdir.path, "branch": workdir.branch, "note": workdir.note}
        check_conversation(self.job, workdir.path)
        self._note_before(workdir)
        return workdir

    def _note_before(self, workdir: WorkDir) -> None:
        from mam.work.git.changes import note_before

        changes = note_before(self.job, self._context.work_directory, workdir, self._private)
        if changes is not None:
            self._begun["changes"] = changes

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

    # -- run and watch ---------------------------------------------------------------------------------------------

    def _run_agent(self, launch: Launch, workdir: WorkDir) -> None:
        self._launch = launch
        with self._open_door(workdir) as door:
            env = {**self._context.environment(self.job), **launch.env, "MAM_SOCKET": door.address}
            if launch.reader is not None:
                clock, prices = self._context.registry.store.clock, self._context.prices(self.job)
                self._turn = AgentTurn(self._claim, self._limits, clock, self.job, launch, self._begun, prices)
            is_read = self._turn is not None
            self._upload = self._context.uploader.upload(self.job, is_conversation=is_read)
            plan = Plan(
                argv=tuple(launch.argv), env=env, cwd=workdir.path, stdin=launch.stdin, tee=is_read, tee_errors=is_read
            )
            self._last = self._watch(plan)

    def _open_door(self, workdir: WorkDir) -> Door:
        report_start = self._start_reporter.report
        door = self._context.door(self.job, workdir.path, self.supervision.note_report, report_start)
        self.supervision.waits_for_children = lambda: door.waits > 0
        self._asker = door.asker
        self.supervision.on_change = door.asker.record_changed
        return door

    def _watch(self, plan: Plan) -> LastMessage:
        log = output_path(self._context.work_directory, self.job.job_id, self.job.attempt)
        plan = plan.replace(keep_alive_seconds=self.supervision.keep_alive_seconds())
        with self._context.guardian.start(plan, log) as run:
            self.supervision.attach(run)
            run.wait()
            self._upload.begin(log)
            if run.started is not None:
                self._begun["process"] = run.started.to_json()
                self._pid_line = self._context.pid_file.add(self.job, self._begun)
                self._note_start()
                may_be_short = self._pid_line is not None and self._turn is None
                if not (may_be_short and self.supervision.ends_within(run, SHORT_RUN_SECONDS)):
                    self._context.uploader.follow(self._upload)
                    self._retry_while_unreachable(self._start_reporter.report)
            if self._turn is None:
                last = self.supervision.wait_until_ended(run)
            else:
                with self._turn.reading(run, self._context.grace_seconds):
                    last = self.supervision.wait_until_ended(run)
            self._keeper = run.take_idle_keeper()
            self._remove_pid_line()
            return last

    def _remove_pid_line(self) -> None:
        """Before the keeper may run the agent of another job."""
        if self._pid_line is not None and self._keeper is not None:
            self._context.pid_file.remove(self._pid_line, is_tree_gone=True)
            self._pid_line = None

    def _note_start(self) -> None:
        """The agent runs, so this machine can run agents."""
        self._start_reporter.agent_started(self._begun)
        self._context.backoff.reset()

    def _wait_for_person(self, text: str) -> None:
        """Shows the brief, then waits until the person runs `mam complete` or `mam fail`."""
        self._note_start()
        self._retry_while_unreachable(self._start_reporter.report)
        self._context.show(text)
        self.supervision.wait_until_reported()

    # -- judge and check -------------------------------------------------------------------------------------------

    def _judge(self, workdir: WorkDir) -> Verdict:
        last, turn, run = self._last, self._turn, run_facts(self._begun, self._last)
        denials = self._denials()
        if denials.count:
            run["denials"] = denials.count
        if turn is not None:
            turn.decided = denials.decided
        if self.supervision.ended_because == supervision.REVOKED:
            self._commit_if_cancelled()
            return GiveUp()
        if was_interrupted(last, self.supervision.ended_because):
            return HandBack(run=run)
        if isinstance(last, Failed) and last.is_machine_error:
            return HandBackUnstarted(reason=last.reason)
        # An exit code decides without a read of the record; see Finish.only_if_unreported.
        is_unread = self._launch.success == EXIT and not self.supervision.may_have_reported
        reported = None if is_unread else self._retry_while_unreachable(self._claim.read).said
        if turn is not None and self._context.waits_for_limits and self._stopped() is None:
            limit = turn.usage_limit(reported)
            if limit is not None:
                return self._at_limit(
                    WaitForReset(
                        run=run, text=limit.text, resets_at_ms=limit.resets_at_ms,
                        has_answered=turn.report.has_answered,
                    )
                )  # fmt: skip
        ending = self._failure(reported) or self._check(workdir)
        if ending is None:
            return HandBack(run=run)
        self._note_after(run, is_wip=ending.reason is not None)
        if ending.reason is None and self.job.repository is not None and workdir.kind == "worktree":
            ending = self._deliver(ending, run)
        result = result_text(last, reported) if turn is None else turn.result(reported)
        return Finish(ending=ending.replace(run=run, result=result), only_if_unreported=is_unread)

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

    def _failure(self, reported: Json | None) -> Ending | None:
        """Why the attempt failed before its work was checked; None if there is work to check."""
        last = None if self.supervision.lingered else self._last
        turn_failure = None if self._turn is None else self._turn.failure(last, reported)
        launch, retry_on_exit = self._launch, self.job.retry_on_exit
        return (
            self._stopped()
            or undecided_denial(self._denials())
            or turn_failure
            or failure(last, reported, launch.success, launch.retry_codes, retry_on_exit=retry_on_exit)
        )

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

    def _deliver(self, ending: Ending, run: Json) -> Ending:
        """Commits and pushes the work. The lease is renewed meanwhile, as during the checks."""
        from mam.work.git.delivery import COMMAND, deliver

        command = self._context.request_command or COMMAND
        delivery = deliver(self.job, self._context.work_directory, self._context.repos, command, self._private)
        run.update(delivery.run)
        self._removes_worktree = delivery.is_clean
        return ending.replace(reason=delivery.reason)

    def _send_output(self) -> None:
        self._context.uploader.forget(self._upload)
        self._send(self._upload.send, is_all=True)

    def _send(self, call: Callable[P, None], *args: P.args, **options: P.kwargs) -> None:
        """What cannot be stored for another reason than an outage is not worth a job."""
        try:
            self._retry_while_unreachable(call, *args, **options)
        except (MamError, OSError) as error:
            self._context.say(self.job, f"not stored for other hosts: {error}")

    # -- write -----------------------------------------------------------------------------------------------------

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
            return _described(job)
        return f"given up: it is {job.status}{'' if job.status.ended else f', attempt {job.attempt}'}"

    def _write_end(self, verdict: Finish) -> str:
        if self._turn is not None:
            self._limits.resume_others()
        began = self._start_reporter.unreported()
        job = self._claim.finish(verdict.ending, began, only_if_unreported=verdict.only_if_unreported)
        if isinstance(job, Reported):
            return self._write_end(Finish(ending=self._with_report(verdict.ending, job.outcome)))
        if _has_ended_run(job):
            keeper, self._keeper = self._keeper, None
            self._context.guardian.return_keeper(keeper)
        if self._removes_worktree:
            from mam.work.git.delivery import remove_clean_worktree

            remove_clean_worktree(self._context.work_directory, job.workspace_id)
        return _described(job)

    def _with_report(self, ending: Ending, reported: Json) -> Ending:
        """The ending, judged again with the outcome that the agent had reported unnoticed."""
        judged = self._failure(reported) or ending
        return judged.replace(run=ending.run, result=result_text(self._last, reported))

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


def _described(job: Job) -> str:
    """The status, with its reason if there is one."""
    has_reason = job.reason and job.reason != job.status and job.status is not COMPLETED
    return f"{job.status}: {job.reason}" if has_reason else str(job.status)


def _may_have_left_processes(job: Job) -> bool:
    """Whether the record does not say how some earlier attempt ended."""
    known = (job.run or {}).get("attempt") if _has_ended_run(job) else 0
    return job.attempt - 1 > (known if type(known) is int else 0)


def _has_ended_run(job: Job) -> bool:
    """Whether the record says how its last run ended, so that no worker will look for its processes."""
    return "exit_code" in (job.run or {})
