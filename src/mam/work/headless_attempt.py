"""An attempt at a job whose agent the worker runs itself, or that a person does: prepare, run, watch, judge."""

from __future__ import annotations

import os

from mam.jobs.resuming import has_brief, resumable_conversation
from mam.jobs.worker_acts import Ending
from mam.util.state_dir import make_private
from mam.work import supervision
from mam.work.adapters.port import EXIT, SAID, Launch
from mam.work.agent_turn import AgentTurn
from mam.work.attempt import Attempt, described, has_ended_run
from mam.work.brief import brief
from mam.work.claim import Reported
from mam.work.conversation_checks import check_conversation
from mam.work.outcome import failure, result_text, run_facts, undecided_denial, was_interrupted
from mam.work.process.messages import Failed
from mam.work.process.runner import Plan
from mam.work.state_dirs import output_path
from mam.work.verdict import Finish, GiveUp, HandBack, HandBackUnstarted, WaitForReset
from mam.work.workdir import prepare_workdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json
    from mam.work.context import WorkerContext
    from mam.work.process.channel import Channel
    from mam.work.process.messages import LastMessage
    from mam.work.verdict import Verdict
    from mam.work.workdir import WorkDir

SHORT_RUN_SECONDS = 0.1
"""A run that ends within this time is reported, start and end, in one write."""
_BY_PERSON = Launch(argv=(), env={}, success=SAID)


class HeadlessAttempt(Attempt):
    def __init__(self, context: WorkerContext, job: Job) -> None:
        super().__init__(context, job)
        self._launch = _BY_PERSON
        self._last: LastMessage | None = None
        """How the agent's process ended; None if there was none."""
        self._turn: AgentTurn | None = None
        """The turn of a coding agent, whose output mam reads; None for other agents."""
        self._keeper: Channel | None = None
        """The agent's keeper, once it is idle."""
        self._pid_line: int | None = None
        self._removes_worktree = False
        """Whether the worktree is removed once the end is written."""

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

    def _prepare(self) -> WorkDir:
        context = self._context
        if not os.path.isdir(context.work_directory):  # a user may have removed it
            make_private(context.work_directory)
        workdir = prepare_workdir(self.job, context.work_directory, context.workdirs, context.repos)
        self._begun |= {"place": workdir.path, "branch": workdir.branch, "note": workdir.note}
        check_conversation(self.job, workdir.path)
        self._note_before(workdir)
        return workdir

    def _resumes_briefed(self, workdir: WorkDir) -> bool:
        """Whether the agent continues a conversation in which it has read the brief."""
        is_resumed = resumable_conversation(self.job, self._begun["host"], workdir.path) is not None
        return is_resumed and has_brief(self.job)

    # -- run and watch -----------------------------------------------------------------------------------------------

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

    def _wait_for_person(self, text: str) -> None:
        """Shows the brief, then waits until the person runs `mam complete` or `mam fail`."""
        self._note_start()
        self._retry_while_unreachable(self._start_reporter.report)
        self._context.show(text)
        self.supervision.wait_until_reported()

    # -- judge -------------------------------------------------------------------------------------------------------

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

    def _deliver(self, ending: Ending, run: Json) -> Ending:
        """Commits and pushes the work. The lease is renewed meanwhile, as during the checks."""
        from mam.work.git.delivery import COMMAND, deliver

        command = self._context.request_command or COMMAND
        delivery = deliver(self.job, self._context.work_directory, self._context.repos, command, self._private)
        run.update(delivery.run)
        self._removes_worktree = delivery.is_clean
        return ending.replace(reason=delivery.reason)

    # -- write -------------------------------------------------------------------------------------------------------

    def _with_report(self, ending: Ending, reported: Json) -> Ending:
        """The ending, judged again with the outcome that the agent had reported unnoticed."""
        judged = self._failure(reported) or ending
        return judged.replace(run=ending.run, result=result_text(self._last, reported))

    def _write_end(self, verdict: Finish) -> str:
        if self._turn is not None:
            self._limits.resume_others()
        began = self._start_reporter.unreported()
        job = self._claim.finish(verdict.ending, began, only_if_unreported=verdict.only_if_unreported)
        if isinstance(job, Reported):
            return self._write_end(Finish(ending=self._with_report(verdict.ending, job.outcome)))
        if has_ended_run(job):
            keeper, self._keeper = self._keeper, None
            self._context.guardian.return_keeper(keeper)
        if self._removes_worktree:
            from mam.work.git.delivery import remove_clean_worktree

            remove_clean_worktree(self._context.work_directory, job.workspace_id)
        return described(job)

    def _clean_up(self) -> None:
        if self._keeper is not None:
            self._keeper.close()
        if self._pid_line is not None:
            self._context.pid_file.remove(self._pid_line, is_tree_gone=False)
