"""One attempt at one job in a live session: submit the brief, watch the turn, check, finish.

The session outlives the job and the worker, so the end of an attempt does not end it. A worker that has to leave hands
the job back while the session continues, and the next worker watches it. mam interrupts a turn that was cancelled or
timed out with the key that the agent has for it.
"""

from __future__ import annotations

import time

from mam.agent_table import agent_kind
from mam.agents.hook_events import event_from_hook
from mam.agents.hook_setup import HOOKED
from mam.agents.send import press_key
from mam.errors import AgentNotFound, MamError
from mam.jobs.activity import NEEDS_PERMISSION, SCREEN
from mam.jobs.worker_acts import Ending
from mam.work import supervision
from mam.work.adapters.port import EXIT
from mam.work.asking.session_requests import SessionRequests
from mam.work.attempt import Attempt
from mam.work.brief import CANNOT, brief
from mam.work.claim import STORE_UNREACHABLE
from mam.work.conversation_checks import check_live_conversation
from mam.work.live.assignment import ENDED, INTERRUPTED
from mam.work.live.session import RESTART_SECONDS, SESSION
from mam.work.live.submit import Submission
from mam.work.live.usage import turn_cost
from mam.work.live.waiting_jobs import WaitingJobs
from mam.work.outcome import REASON_LIMIT, failure, result_text, undecided_denial, was_interrupted
from mam.work.reports.problems import reset_in
from mam.work.verdict import Finish, GiveUp, HandBack, Postpone, WaitForReset
from mam.work.workdir import prepare_workdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.turns import Turn
    from mam.jobs.record import Job, Json
    from mam.work.context import WorkerContext
    from mam.work.door.server import Door
    from mam.work.live.session import LiveSession
    from mam.work.verdict import Verdict
    from mam.work.workdir import WorkDir

LOOK_SECONDS = 0.2
SCREEN_SECONDS = 2.0
SEEK_SECONDS = 3.0
SETTLE_SECONDS = 1.0
"""A user's own hook may reject the end of a turn, which then continues at once."""
TRY_AGAIN_SECONDS = 5.0
_PROGRESS_HOOKS = ("PostToolUse", "PostToolUseFailure", "SubagentStop", "StopFailure")
LIMIT = "rate_limit"
_RETRYABLE = (LIMIT, "overloaded", "server_error", "unknown")
_WORDS_LIMIT = 200


class LiveAttempt(Attempt):
    def __init__(self, context: WorkerContext, job: Job, session: LiveSession) -> None:
        super().__init__(context, job)
        self._session = session
        self._submission: Submission | None = None
        self._requests: SessionRequests | None = None
        self._since = time.monotonic()
        self._looked = self._sought = 0.0
        self._asked = self._asked_on_screen = self._replacement_reported = False
        self._waiting_jobs = WaitingJobs(context.registry, session.labels)

    def _attempt(self) -> Verdict:
        self._end_earlier_attempts()
        if self.job.model is not None:
            why = f"a live session keeps its own model, and the job names {self.job.model}"
            raise AgentNotFound(agent=self.job.agent, why=why)
        if self.job.agent != self._session.tool and self.job.agent_session != self._session.label:
            why = f"the live session {self._session.name}, which claimed it, is {self._session.tool}"
            raise AgentNotFound(agent=self.job.agent, why=why)
        workdir = prepare_workdir(self.job, self._context.work_directory, self._context.workdirs)
        self._begun |= {"place": workdir.path, "branch": workdir.branch, "note": workdir.note, "session": self._about()}
        check_live_conversation(self.job, self._begun["session"])
        self._note_before(workdir)
        with self._open_door(workdir) as door:
            self._requests = SessionRequests(self._session.root, self.job.job_id, door.asker)
            problem = self._submit(workdir, door)
            if problem is not None:
                return self._not_submitted(problem)
            is_gone = self._watch_turn()
        return self._judge_turn(workdir, is_gone=is_gone)

    def _finish(self, verdict: Verdict) -> None:
        """Also updates the assignment: the note beside the session that names its job."""
        self._write(verdict)
        if self._submission is None:
            return
        match verdict:
            case GiveUp():
                self._interrupt_if_ended(self._submission)
            case Finish():
                turn = INTERRUPTED if self.supervision.ended_because else ENDED
                self._session.end_assignment(self._submission.mark, turn)
            case WaitForReset():
                self._session.end_assignment(self._submission.mark)

    def _submit(self, workdir: WorkDir, door: Door) -> str | None:
        """None when the turn has begun; otherwise why the session cannot take the job."""
        session, job = self._session, self.job
        submission = Submission(session, job, door.address, lambda: self.supervision.ended_because is not None)
        try:
            submission.run(brief(job, workdir.path))
        except STORE_UNREACHABLE:
            raise
        except MamError as refusal:
            return str(refusal)
        self._submission = submission
        how = f"{session.name} continues it" if submission.resumed else f"handed to {session.name}"
        self._context.say(job, f"{how} (proof: {submission.proof or 'none'})")
        self._begun["session"] |= {"proof": submission.proof, "mark": submission.mark}
        self._note_start()
        self._retry_while_unreachable(self._start_reporter.report)
        return None

    def _about(self) -> Json:
        record = self._session.record
        return {"name": self._session.name, "agent_id": record.agent_id, "generation_id": record.generation_id}

    def _not_submitted(self, why: str) -> Verdict:
        """The session got nothing, so the job is unchanged."""
        because = self.supervision.ended_because
        if because == supervision.REVOKED:
            return GiveUp()
        if because is not None:
            return HandBack(run=self._begun)
        return Postpone(reason=why, seconds=TRY_AGAIN_SECONDS, waiting_for=SESSION)

    # -- watching --------------------------------------------------------------------------------------------------

    @property
    def _own_turn(self) -> Turn | None:
        assert self._submission is not None
        return self._session.turns.find_by_mark(self._submission.mark)

    def _watch_turn(self) -> bool:
        """Waits until the turn has ended, the agent has reported an outcome, or the attempt is stopped. Returns whether
        the session's program has ended."""
        settled = 0.0
        while not self.supervision.reported_within(LOOK_SECONDS):
            self._read_hooks()
            if self._session.is_gone():
                self._read_hooks()
                return (turn := self._own_turn) is None or not turn.ended
            turn = self._own_turn
            if turn is not None and turn.ended:
                settled = settled or time.monotonic()
                if time.monotonic() - settled >= SETTLE_SECONDS:
                    return False
            else:
                settled = 0.0
            self._look_for_end(turn)
            self._look_at_screen()
            self._look_at_requests()
            self._report_waiting_jobs()
        self._read_hooks()
        return False

    def _look_for_end(self, turn: Turn | None) -> None:
        """Reads the transcript for an end that no hook reported, after giving the hook some time."""
        if turn is None or turn.ended or time.monotonic() - self._sought < SEEK_SECONDS:
            return
        self._sought = time.monotonic()
        if time.time() * 1000 - turn.last_hook_ms >= SEEK_SECONDS * 1000:
            self._session.look_for_end(turn)

    def _read_hooks(self) -> None:
        assert self._submission is not None
        for fields, turn in self._session.read_hooks():
            if turn.mark != self._submission.mark:
                continue
            self.supervision.note_activity()
            event = event_from_hook(self._session.tool, fields)
            now = bool(turn.question)
            if event is not None and (now != self._asked or (not now and fields["hook_event_name"] in _PROGRESS_HOOKS)):
                self._publish(*event)
            self._asked = self.supervision.waits_for_person = now
        self._notice_earlier_question()
        self._notice_replacement()

    def _notice_earlier_question(self) -> None:
        """A fast agent asks before the proof of its turn has been read."""
        turn = self._own_turn
        if turn is not None and turn.question and not self._asked:
            self._asked = self.supervision.waits_for_person = True
            detail = f"{self._session.tool} needs permission for {turn.question}"
            self._publish("permission_required", detail, {"source": f"{self._session.tool} hook"})

    def _notice_replacement(self) -> None:
        """A person interrupted the turn and typed something else. Only a person can say now whether the job is done."""
        turn = self._own_turn
        if turn is None or turn.ended or not turn.replaced:
            return
        self.supervision.waits_for_person = True
        if not self._replacement_reported:
            self._replacement_reported = True
            detail = "another prompt replaced its turn; end the job with mam complete, fail or cancel"
            self._publish("permission_required", detail, {"source": f"{self._session.tool} hook"})

    def _look_at_screen(self) -> None:
        """A changing screen is activity. Without hooks, questions can only be seen on the screen."""
        if time.monotonic() - self._looked < SCREEN_SECONDS:
            return
        self._looked = time.monotonic()
        try:
            if self._session.screen_unchanged_seconds(self._session.target()) < SCREEN_SECONDS:
                self.supervision.note_activity()
        except MamError:
            return  # an unreadable screen does not mean that the session has ended
        if self._session.turns.has_hooks:
            return
        state = self._session.state()
        asks = state.state == NEEDS_PERMISSION
        if asks and not self._asked_on_screen:
            self._publish("permission_required", f"its screen asks: {state.why}", {"source": SCREEN})
        elif self._asked_on_screen and not asks:
            self._publish("progress", "its screen asks nothing more", {"source": SCREEN})
        self._asked_on_screen = self.supervision.waits_for_person = asks

    def _report_waiting_jobs(self) -> None:
        """While the session waits for a person, who waits for the session."""
        if not self.supervision.waits_for_person:
            self._waiting_jobs.forget()
        elif (behind := self._waiting_jobs.news()) is not None:
            self._context.say(self.job, f"meanwhile {behind}")

    def _look_at_requests(self) -> None:
        """Hooks of the session that ask a person."""
        assert self._requests is not None
        try:
            self._requests.look()
        except (MamError, OSError):
            return  # the store or the disk refuses it, or the claim is gone; the next look or renewal meets it

    def _publish(self, event: str, detail: str, data: Json) -> None:
        """A lost event is harmless; if the claim has a problem, the next renewal meets it."""
        if event == "permission_required":
            self._context.say(self.job, f"{self._session.name} waits for a person: {detail}")
        try:
            self._claim.publish("progress" if event == "started" else event, detail, data)
        except MamError:
            return

    # -- judge -----------------------------------------------------------------------------------------------------

    def _judge_turn(self, workdir: WorkDir, *, is_gone: bool) -> Verdict:
        turn, because = self._own_turn, self.supervision.ended_because
        took = {"wall_seconds": round(time.monotonic() - self._since, 3)}
        run = {**self._begun, **took, "turn": self._ended_by(turn, is_gone=is_gone)}
        denials = self._denials()
        if denials.count:
            run["denials"] = denials.count
        if because == supervision.REVOKED:
            self._commit_if_cancelled()
            return GiveUp()
        if was_interrupted(None, because):
            return HandBack(run=run)
        reported = self._retry_while_unreachable(self._claim.read).said
        self._note_cost(run, turn)
        if is_gone and reported is None:
            return self._judge_gone(run)
        if turn is not None and turn.failure == LIMIT:
            self._cancel_own_wait()
            if reported is None and self._context.waits_for_limits:
                text = first_line(turn.text) or turn.failure
                resets_at_ms = reset_in(turn.text or "")
                return self._at_limit(WaitForReset(run=run, text=text, resets_at_ms=resets_at_ms, has_answered=False))
        self._limits.resume_others()
        failed = (
            self._stopped()
            or undecided_denial(denials)
            or failure(None, reported, EXIT, ())
            or _failure(turn if reported is None else None)
        )
        ending = failed or self._check(workdir)
        if ending is None:
            return HandBack(run=run)
        if because is not None:
            self._interrupt()
        self._note_after(run, is_wip=ending.reason is not None)
        answer = result_text(None, reported) or (turn.text if turn is not None else None)
        return Finish(ending=ending.replace(run=run, result=answer))

    def _note_cost(self, run: Json, turn: Turn | None) -> None:
        """What an interrupted turn took is unknown."""
        if turn is None or self.supervision.ended_because is not None:
            return
        prices = self._context.prices(self.job)
        cost = turn_cost(self._session.tool, self._session.turns.transcript, turn, prices)
        if cost:
            run["agent"] = {"name": self._session.tool, **cost}

    def _ended_by(self, turn: Turn | None, *, is_gone: bool) -> Json:
        """For the record: what showed that the turn is over."""
        if is_gone:
            return {"ended_by": "process"}
        if turn is not None and turn.ended:
            return {"ended_by": turn.ended_by, "name": turn.name}
        return {"ended_by": "protocol" if self.supervision.ended_because is None else self.supervision.ended_because}

    def _judge_gone(self, run: Json) -> Verdict:
        """The session's program has ended. If the session is being restarted, the job goes back; otherwise the attempt
        failed and may be retried."""
        ends = time.monotonic() + RESTART_SECONDS
        while not self._session.is_over() and time.monotonic() < ends:
            time.sleep(LOOK_SECONDS)
        if self._session.is_replaced():
            return HandBack(run=run)
        reason = f"the session {self._session.name} ended before the job did"
        return Finish(ending=Ending(run=run, reason=reason, retryable=True))

    # -- interrupt -------------------------------------------------------------------------------------------------

    def _interrupt_if_ended(self, submission: Submission) -> None:
        """The claim is gone. A job that has ended (it was cancelled) must not continue; one that another worker has
        claimed belongs to that worker."""
        try:
            has_ended = self._claim.read().status.ended
        except MamError:
            return
        if has_ended:
            self._interrupt()
            self._session.end_assignment(submission.mark, INTERRUPTED)

    def _interrupt(self) -> None:
        """Presses the agent's key for it, once. In a dialog this key means no."""
        turn = self._own_turn
        if self._session.tool in HOOKED and (turn is None or not turn.ended):
            self._press_escape()

    def _cancel_own_wait(self) -> None:
        """Some agents wait for the reset and then continue their turn. mam waits instead, so that the job is not done
        twice."""
        if agent_kind(self._session.tool).waits_for_limit:
            self._press_escape()

    def _press_escape(self) -> None:
        try:
            press_key(self._session.target(), "Escape")
            for _ in range(1, agent_kind(self._session.tool).escape_presses):
                time.sleep(LOOK_SECONDS)
                press_key(self._session.target(), "Escape")
        except MamError as error:
            self._context.say(self.job, f"not interrupted: {error}")


def _failure(turn: Turn | None) -> Ending | None:
    if turn is None:
        return None
    if turn.failure:
        return Ending(run={}, reason=f"its turn ended with {turn.failure}", retryable=turn.failure in _RETRYABLE)
    if turn.text is not None and turn.text.startswith(CANNOT):
        return Ending(run={}, reason=turn.text.removeprefix(CANNOT).strip()[:REASON_LIMIT] or "it cannot be done")
    return None


def first_line(text: str | None) -> str:
    return next(iter((text or "").strip().splitlines()), "")[:_WORDS_LIMIT]
