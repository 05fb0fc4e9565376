"""One attempt at one job, from the claim to its end: prepare, run, watch, check, finish.

Nothing in here may keep the worker from its next job: what goes wrong becomes the job's reason, and what cannot even be
written down is left to the lease.
"""

from __future__ import annotations

import os
import time

from mam.errors import ClaimLost, FetchFailed, MachineUnfit, MamError, WorkDirMissing
from mam.jobs.worker_acts import Ending, OutcomeReported
from mam.util.state_dir import make_private
from mam.work import supervision
from mam.work.adapters.port import EXIT, SAID
from mam.work.agent_turn import AgentTurn
from mam.work.brief import brief
from mam.work.claim import STORE_UNREACHABLE, Claim
from mam.work.host_checks import describe_error, is_machine_error
from mam.work.outcome import failure, result_text, run_facts, was_interrupted
from mam.work.process.messages import Failed
from mam.work.process.orphans import EarlierAttempts
from mam.work.process.pidfiles import recorded_processes
from mam.work.process.runner import Plan
from mam.work.start_reporter import MOMENT_SECONDS, StartReporter
from mam.work.state_dirs import output_path, private_prefix
from mam.work.supervision import Supervision
from mam.work.takeover import end_earlier, end_orphans
from mam.work.validator import check
from mam.work.workdir import prepare_workdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from mam.jobs.record import Job, Json
    from mam.work.adapters.port import Launch
    from mam.work.context import WorkerContext
    from mam.work.door.server import Door
    from mam.work.process.channel import Channel
    from mam.work.process.messages import LastMessage
    from mam.work.workdir import WorkDir

    T = TypeVar("T")

POSTPONED_SECONDS = 60.0
_PAUSE_SECONDS = 0.5


class Attempt:
    def __init__(self, context: WorkerContext, job: Job) -> None:
        self.job = job
        self._context = context
        self._claim = Claim(context.registry, job)
        self.supervision = Supervision(self._claim, job, context.lease_seconds, context.grace_seconds)
        self._start_reporter = StartReporter(self._claim)
        self._private = private_prefix(context.work_directory, job.job_id, job.attempt)
        self._removes_worktree = False
        """Whether its worktree goes when the end is written."""
        self._begun: Json = {"attempt": job.attempt, "host": os.uname().nodename}
        self._turn: AgentTurn | None = None
        """What is heard of a coding agent; None for all others."""
        self._keeper: Channel | None = None
        """The agent's, when there is nothing left to keep."""
        self._pid_line: int | None = None

    def run(self) -> None:
        """Never raises."""
        try:
            with self.supervision:
                write = self._run()
            write()
        except ClaimLost as lost:
            self._context.say(self.job, f"given up: {lost}")
        except (WorkDirMissing, *STORE_UNREACHABLE) as missing:
            self._postpone(str(missing))
        except MachineUnfit as unfit:
            self._hand_back_unbegun(str(unfit.facts["why"]))
        except FetchFailed as failed:
            self._finish(Ending(run=self._begun, reason=str(failed), retryable=True))
        except MamError as error:
            self._finish(Ending(run=self._begun, reason=str(error)))
        except (OSError, MemoryError) as error:
            if is_machine_error(error) and not self._start_reporter.has_started:
                self._hand_back_unbegun(describe_error(error))
            else:
                self._finish(Ending(run=self._begun, reason=f"the worker's system: {describe_error(error)}"))
        except Exception as error:
            self._finish(Ending(run=self._begun, reason=f"a bug in mam: {type(error).__name__}: {error}"))
        finally:
            if self._keeper is not None:
                self._keeper.close()
            if self._pid_line is not None:
                self._context.pid_file.remove(self._pid_line, is_tree_gone=False)

    def _run(self) -> Callable[[], None]:
        """All but the last word, which is what comes back."""
        self._end_earlier()
        if not os.path.isdir(self._context.work_directory):  # somebody has cleared all of it away
            make_private(self._context.work_directory)
        workdir = prepare_workdir(self.job, self._context.work_directory, self._context.workdirs, self._context.repos)
        self._begun |= {"place": workdir.path, "branch": workdir.branch, "note": workdir.note}
        text = brief(self.job)
        launch = self._context.adapter(self.job).launch(self.job, text, workdir, self._private)
        if launch is None:
            self._by_hand(text)
            return self._judged(None, SAID, (), workdir)
        with self._context.door(
            self.job, workdir.path, self.supervision.note_report, self._start_reporter.report
        ) as door:
            self.supervision.waits_for_children = lambda: door.waits > 0
            last = self._agent(launch, workdir, door)
        return self._judged(last, launch.success, launch.retry_codes, workdir)

    def _end_earlier(self) -> None:
        """Two attempts are never both at work where this worker can help it; where it cannot, the record says so."""
        job, run = self.job, self.job.run or {}
        earlier = recorded_processes(job, self._context.work_directory) if job.attempt > 1 else []
        if not _is_over(job) and isinstance(run.get("process"), dict):
            earlier.append({**run["process"], "host": run.get("host")})
        find_orphans = EarlierAttempts(job_id=job.job_id, attempt=job.attempt, mark=self._context.mark).find_orphans
        left = [end_earlier(process, find_orphans) for process in earlier]
        if _may_have_left_somebody(job):
            left.append(end_orphans(find_orphans))
        if told := [words for words in left if words is not None]:
            self._begun["earlier"] = told[-1]

    def _agent(self, launch: Launch, workdir: WorkDir, door: Door) -> LastMessage:
        env = {**self._context.environment(self.job), **launch.env, "MAM_SOCKET": door.address}
        if launch.reader is not None:
            prices = self._context.prices(self.job)
            self._turn = AgentTurn(self._context.registry, self._claim, self.job, launch, self._begun, prices)
        is_heard = self._turn is not None
        plan = Plan(
            argv=tuple(launch.argv), env=env, cwd=workdir.path, stdin=launch.stdin, tee=is_heard, tee_errors=is_heard
        )
        log = output_path(self._context.work_directory, self.job.job_id, self.job.attempt)
        with self._context.guardian.start(plan, log) as run:
            self.supervision.attach(run)
            run.wait()
            if run.started is not None:
                self._begun["process"] = run.started.to_json()
                self._pid_line = self._context.pid_file.add(self.job, self._begun)
                self._happened()
                can_wait = self._pid_line is not None and self._turn is None
                if not (can_wait and self.supervision.ends_within(run, MOMENT_SECONDS)):
                    self._insist(self._start_reporter.report)
            if self._turn is None:
                last = self.supervision.wait_until_ended(run)
            else:
                with self._turn.reading(run, self._context.grace_seconds):
                    last = self.supervision.wait_until_ended(run)
            self._keeper = run.take_idle_keeper()
            self._remove_pid_line()
            return last

    def _remove_pid_line(self) -> None:
        """Before its keeper may have another job's agent."""
        if self._pid_line is not None and self._keeper is not None:
            self._context.pid_file.remove(self._pid_line, is_tree_gone=True)
            self._pid_line = None

    def _happened(self) -> None:
        """The agent runs, so this machine can run one."""
        self._start_reporter.agent_started(self._begun)
        self._context.backoff.reset()

    def _by_hand(self, text: str) -> None:
        """A person does it: the brief is shown, and the job is theirs until they say `mam complete` or `mam fail`."""
        self._happened()
        self._insist(self._start_reporter.report)
        self._context.show(text)
        self.supervision.wait_until_reported()

    # -- how it ends -----------------------------------------------------------------------------------------------

    def _judged(
        self, last: LastMessage | None, success: str, retry_codes: tuple[int, ...], workdir: WorkDir
    ) -> Callable[[], None]:
        facts = run_facts(self._begun, last)
        if self.supervision.ended_because == supervision.REVOKED:
            return self._give_up
        if was_interrupted(last, self.supervision.ended_because):
            return lambda: self._hand_back(facts)
        if isinstance(last, Failed) and last.is_machine_error:
            return lambda: self._hand_back_unbegun(last.reason)
        # What an exit code decides is written without asking first what was said; the write itself looks.
        unheard = success == EXIT and not self.supervision.may_have_reported
        said = None if unheard else self._insist(self._claim.read).said
        turn = self._turn
        if turn is not None and self._context.waits_for_limits and turn.is_limited(said) and self._stopped() is None:
            return lambda: self._wait_for_reset(turn, facts)
        how = None if self.supervision.lingered else last
        ending = self._stopped() or (None if turn is None else turn.failure(how, said))
        ending = ending or failure(how, said, success, retry_codes)
        if ending is None:
            ending = self._checked(workdir)
            if ending.reason is not None and self.supervision.ended_because is not None:
                if (stopped := self._stopped()) is None:  # its check was broken off, so nobody knows
                    return lambda: self._hand_back(facts)
                ending = stopped
        if ending.reason is None and self.job.repository is not None and workdir.kind == "worktree":
            ending = self._delivered(ending, facts)
        result = result_text(last, said) if turn is None else turn.result(said)
        ending = ending.replace(run=facts, result=result)

        def with_words(said: Json) -> Ending:
            judged = self._stopped() or failure(how, said, success, retry_codes) or ending
            return judged.replace(run=facts, result=result_text(last, said))

        return lambda: self._finish(ending, with_words if unheard else None)

    def _delivered(self, ending: Ending, facts: Json) -> Ending:
        """The lease is renewed meanwhile, as during the checks."""
        from mam.work.git.delivery import COMMAND, deliver

        command = self._context.request_command or COMMAND
        delivery = deliver(self.job, self._context.work_directory, self._context.repos, command, self._private)
        facts.update(delivery.run)
        self._removes_worktree = delivery.is_clean
        return ending.replace(reason=delivery.reason)

    def _stopped(self) -> Ending | None:
        if self.supervision.ended_because == supervision.TIMED_OUT:
            return Ending(run={}, reason=f"timed out after {self.job.timeout_sec} s")
        if self.supervision.ended_because == supervision.SILENT:
            return Ending(run={}, reason=f"silent for {self.job.idle_timeout_sec} s")
        return None

    def _checked(self, workdir: WorkDir) -> Ending:
        job = self.job
        if not job.expected_artifacts and job.validation is None:
            return Ending(run={})
        context = self._context
        checks = check(job, workdir.path, context.guardian, self._private, context.mark, on_run=self.supervision.attach)
        return Ending(run={}, checks=checks, reason=checks["problem"])

    # -- the last word ---------------------------------------------------------------------------------------------

    def _give_up(self) -> None:
        self._context.say(self.job, "given up: the claim is gone")

    def _hand_back(self, facts: Json) -> None:
        if self._write(lambda: self._claim.hand_back(facts, self._start_reporter.unreported())) is not None:
            self._context.say(self.job, "handed back")

    def _hand_back_unbegun(self, why: str) -> None:
        """Another worker may have what this machine lacks. Nothing has run, so the record of the last run stays."""
        seconds = self._context.backoff.start()
        reason = f"{self._begun['host']} cannot run it now: {why}"
        if self._write(lambda: self._claim.hand_back(reason=reason)) is not None:
            self._context.say(self.job, f"handed back: {reason}; the next claim is in {seconds:.0f} s")

    def _wait_for_reset(self, turn: AgentTurn, facts: Json) -> None:
        job = self._write(lambda: turn.wait_for_reset(facts))
        if job is not None:
            self._context.say(job, f"waits until {job.due_at}: {job.reason}")

    def _postpone(self, why: str) -> None:
        if self._write(lambda: self._claim.postpone(why, POSTPONED_SECONDS)) is not None:
            self._context.say(self.job, why)

    def _finish(self, ending: Ending, with_words: Callable[[Json], Ending] | None = None) -> None:
        """`with_words` judges again when it turns out that the agent has said something."""
        if self._turn is not None:
            self._turn.resume_others()
        began = self._start_reporter.unreported()
        try:
            job = self._write(lambda: self._claim.finish(ending, began, only_if_unreported=with_words is not None))
        except OutcomeReported as spoken:
            if with_words is not None:
                self._finish(with_words(spoken.said))
            return
        if job is not None:
            if _is_over(job):
                self._give_keeper_back()
            why = f": {job.reason}" if job.reason and job.status != "completed" else ""
            self._context.say(job, f"{job.status}{why}")
            if self._removes_worktree:
                from mam.work.git.delivery import remove_clean_worktree

                remove_clean_worktree(self._context.work_directory, job.job_id)

    def _give_keeper_back(self) -> None:
        keeper, self._keeper = self._keeper, None
        self._context.guardian.return_keeper(keeper)

    def _write(self, write: Callable[[], Job]) -> Job | None:
        try:
            return self._insist(write)
        except MamError as error:
            self._context.say(self.job, f"left to its lease: {error}")
            return None

    def _insist(self, write: Callable[[], T]) -> T:
        """A store that is away must not cost an hour's work: it is asked until it answers, since whatever became of the
        job meanwhile, the fence will say so. A worker that has to go does not wait for longer than a lease."""
        ends = time.monotonic() + self._context.lease_seconds
        while True:
            try:
                return write()
            except STORE_UNREACHABLE as away:
                if self._context.is_leaving and time.monotonic() >= ends:
                    raise
                self._context.say_unreachable(away)
                time.sleep(_PAUSE_SECONDS)


def _may_have_left_somebody(job: Job) -> bool:
    """Whether there is an attempt before this one of which the record does not say how it ended."""
    known = (job.run or {}).get("attempt") if _is_over(job) else 0
    return job.attempt - 1 > (known if type(known) is int else 0)


def _is_over(job: Job) -> bool:
    """Whether the record says how its last run ended, so that nobody will look for what is left of it."""
    return "exit_code" in (job.run or {})
