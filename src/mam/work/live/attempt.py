"""One attempt at one job in a live session: handed over, watched, checked, finished.

The session outlives the job and the worker. So nothing of it is ended when the attempt is: a worker that has to go
hands the job back and leaves the session at it, and the next worker goes on watching. What is called off or too late is
broken off by the key that the agent has for that.
"""

from __future__ import annotations

import time

from mam.agents.hook_events import event_from_hook
from mam.agents.hook_setup import CLAUDE, HOOKED, OPENCODE
from mam.agents.send import press_key
from mam.errors import MamError
from mam.jobs.activity import NEEDS_PERMISSION, SCREEN
from mam.jobs.worker_acts import Ending
from mam.work import supervision
from mam.work.adapters.port import EXIT
from mam.work.attempt import Attempt
from mam.work.brief import CANNOT, brief
from mam.work.claim import AWAY
from mam.work.live.session import RESTART_SECONDS, SESSION
from mam.work.live.session_state import ENDED, INTERRUPTED
from mam.work.live.submit import Handing
from mam.work.outcome import REASON_LIMIT, failure, result_of, was_cut
from mam.work.reports.troubles import reset_in
from mam.work.usage_limits import Limits
from mam.work.workdir import prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.agents.turns import Turn
    from mam.jobs.record import Job, Json
    from mam.work.context import Crew
    from mam.work.live.session import LiveSession
    from mam.work.workdir import Place

LOOK_SECONDS = 0.2
SCREEN_SECONDS = 2.0
SEEK_SECONDS = 3.0
SETTLE_SECONDS = 1.0
"""A hook of the user's own may refuse the end of a turn, which then goes on at once."""
TRY_AGAIN_SECONDS = 5.0
_TOLD = ("PostToolUse", "PostToolUseFailure", "SubagentStop", "StopFailure")
LIMIT = "rate_limit"
_RETRYABLE = (LIMIT, "overloaded", "server_error", "unknown")
_WORDS_LIMIT = 200


class LiveAttempt(Attempt):
    def __init__(self, crew: Crew, job: Job, session: LiveSession) -> None:
        super().__init__(crew, job)
        self._session = session
        self._limits = Limits(crew.registry, self._holding, job)
        self._handing: Handing | None = None
        self._since = time.monotonic()
        self._looked = self._sought = 0.0
        self._asked = self._asked_on_screen = self._replacement_told = False

    def _run(self) -> Callable[[], None]:
        self._end_earlier()
        session, job = self._session, self.job
        place = prepare(job, self._crew.work_directory, self._crew.workdirs)
        self._begun |= {"place": place.path, "branch": place.branch, "note": place.note, "session": self._about()}
        with self._crew.door(job, place.path, self.watching.spoke, self._beginning.tell) as door:
            self.watching.is_waiting = lambda: door.waits > 0
            self._handing = Handing(session, job, door.address, lambda: self.watching.ended_because is not None)
            try:
                self._handing.run(brief(job, place.path))
            except AWAY:
                raise
            except MamError as refusal:
                return self._refused(str(refusal))
            how = f"{session.name} goes on with it" if self._handing.resumed else f"handed to {session.name}"
            self._crew.say(job, f"{how} (proof: {self._handing.proof or 'none'})")
            self._begun["session"] |= {"proof": self._handing.proof, "mark": self._handing.mark}
            self._happened()
            self._insist(self._beginning.tell)
            is_gone = self._until_over()
        return self._judged_turn(place, is_gone=is_gone)

    def _about(self) -> Json:
        record = self._session.record
        return {"name": self._session.name, "agent_id": record.agent_id, "generation_id": record.generation_id}

    def _refused(self, why: str) -> Callable[[], None]:
        """Nothing was submitted, so the job is as it was."""
        because = self.watching.ended_because
        if because == supervision.REVOKED:
            return self._give_up
        if because is not None:
            return lambda: self._hand_back(self._begun)

        def wait() -> None:
            if self._write(lambda: self._holding.postpone(why, TRY_AGAIN_SECONDS, SESSION)) is not None:
                self._crew.say(self.job, why)

        return wait

    # -- watching --------------------------------------------------------------------------------------------------

    @property
    def _own_turn(self) -> Turn | None:
        assert self._handing is not None
        return self._session.turns.find_by_mark(self._handing.mark)

    def _until_over(self) -> bool:
        """Until the turn has ended, the agent has said that it is done, or the attempt is over. Whether the session's
        program has ended, which counts before all else."""
        settled = 0.0
        while not self.watching.said_within(LOOK_SECONDS):
            self._hear()
            if self._session.is_gone():
                self._hear()
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
        self._hear()
        return False

    def _look_for_end(self, turn: Turn | None) -> None:
        """Where no hook tells it; one that is on its way comes first."""
        if turn is None or turn.ended or time.monotonic() - self._sought < SEEK_SECONDS:
            return
        self._sought = time.monotonic()
        if time.time() * 1000 - turn.last_hook_ms >= SEEK_SECONDS * 1000:
            self._session.look_for_end(turn)

    def _hear(self) -> None:
        assert self._handing is not None
        for fields, turn in self._session.hear():
            if turn.mark != self._handing.mark:
                continue
            self.watching.sign()
            told = event_from_hook(self._session.tool, fields)
            now = bool(turn.question)
            if told is not None and (now != self._asked or (not now and fields["hook_event_name"] in _TOLD)):
                self._tell(*told)
            self._asked = self.watching.asks = now
        self._notice_earlier_question()
        self._notice_replacement()

    def _notice_earlier_question(self) -> None:
        """A quick agent asks before the proof of its turn has been looked at."""
        turn = self._own_turn
        if turn is not None and turn.question and not self._asked:
            self._asked = self.watching.asks = True
            told = f"{self._session.tool} needs permission for {turn.question}"
            self._tell("permission_required", told, {"source": f"{self._session.tool} hook"})

    def _notice_replacement(self) -> None:
        """A person broke the turn off and typed something else. Whether the job is done only somebody can say now."""
        turn = self._own_turn
        if turn is None or turn.ended or not turn.replaced:
            return
        self.watching.asks = True
        if not self._replacement_told:
            self._replacement_told = True
            told = "another prompt took the place of its turn; mam complete, fail or cancel says what became of it"
            self._tell("permission_required", told, {"source": f"{self._session.tool} hook"})

    def _look_at_screen(self) -> None:
        """What moves is alive. Without hooks a question can only be seen; with them they know better."""
        if time.monotonic() - self._looked < SCREEN_SECONDS:
            return
        self._looked = time.monotonic()
        try:
            if self._session.still_seconds(self._session.target()) < SCREEN_SECONDS:
                self.watching.sign()
        except MamError:
            return  # not to be seen is not dead
        if self._session.turns.has_hooks:
            return
        state = self._session.state()
        asks = state.state == NEEDS_PERMISSION
        if asks and not self._asked_on_screen:
            self._tell("permission_required", f"its screen asks: {state.why}", {"source": SCREEN})
        elif self._asked_on_screen and not asks:
            self._tell("progress", "its screen asks no more", {"source": SCREEN})
        self._asked_on_screen = self.watching.asks = asks

    def _tell(self, event: str, detail: str, data: Json) -> None:
        """A hook that could not be told costs nothing but news; whatever ails the claim, the next renewal meets it."""
        try:
            self._holding.tell("progress" if event == "started" else event, detail, data)
        except MamError:
            return

    # -- how it ends -----------------------------------------------------------------------------------------------

    def _judged_turn(self, place: Place, *, is_gone: bool) -> Callable[[], None]:
        turn, because = self._own_turn, self.watching.ended_because
        took = {"wall_seconds": round(time.monotonic() - self._since, 3)}
        facts = {**self._begun, **took, "turn": self._ended_by(turn, is_gone=is_gone)}
        if because == supervision.REVOKED:
            return self._revoked
        if was_cut(None, because):
            return lambda: self._hand_back(facts)
        said = self._insist(self._holding.look).said
        if is_gone and said is None:
            return self._gone(facts)
        if turn is not None and turn.failure == LIMIT:
            self._cancel_own_wait()
            if said is None and self._crew.waits_for_limits:
                return lambda: self._limited(turn, facts)
        self._limits.let_others_go()
        ending = self._stopped() or failure(None, said, EXIT, ()) or _failed(turn if said is None else None)
        if ending is None:
            ending = self._checked(place)
            if ending.reason is not None and self.watching.ended_because is not None and self._stopped() is None:
                return lambda: self._hand_back(facts)
        answer = result_of(None, said) or (turn.text if turn is not None else None)
        ending = ending.replace(run=facts, result=answer)
        if because is not None:
            self._break_off()
        return lambda: self._last_word(ending)

    def _ended_by(self, turn: Turn | None, *, is_gone: bool) -> Json:
        """Who said that it is over."""
        if is_gone:
            return {"ended_by": "process"}
        if turn is not None and turn.ended:
            return {"ended_by": turn.ended_by, "name": turn.name}
        return {"ended_by": "protocol" if self.watching.ended_because is None else self.watching.ended_because}

    def _last_word(self, ending: Ending) -> None:
        self._finish(ending)
        assert self._handing is not None
        self._session.end_page(self._handing.mark, INTERRUPTED if self.watching.ended_because else ENDED)

    def _limited(self, turn: Turn, facts: Json) -> None:
        """The agent pauses until the limit is over; that costs the job nothing."""
        words = first_line(turn.text) or turn.failure
        resets_at_ms = reset_in(turn.text or "")
        if self._write(lambda: self._limits.wait_out(words, resets_at_ms, facts, answered=False)) is not None:
            self._crew.say(self.job, f"usage limit: {words}")
        assert self._handing is not None
        self._session.end_page(self._handing.mark)

    def _gone(self, facts: Json) -> Callable[[], None]:
        """Started anew, its jobs go back, which is no fault of theirs; ended for good, it failed, and may be tried
        again."""
        ends = time.monotonic() + RESTART_SECONDS
        while not self._session.is_over() and time.monotonic() < ends:
            time.sleep(LOOK_SECONDS)
        if self._session.is_replaced():
            return lambda: self._hand_back(facts)
        reason = f"the session {self._session.name} ended before the job did"
        return lambda: self._last_word(Ending(run=facts, reason=reason, retryable=True))

    def _revoked(self) -> None:
        """Called off: the session is stopped too. Taken by somebody else: it is theirs."""
        assert self._handing is not None
        self._give_up()
        try:
            ended = self._holding.look().status.ended
        except MamError:
            return
        if ended:
            self._break_off()
            self._session.end_page(self._handing.mark, INTERRUPTED)

    def _break_off(self) -> None:
        """The agent's own key for it, once. In a dialog it means no."""
        turn = self._own_turn
        if self._session.tool in HOOKED and (turn is None or not turn.ended):
            self._press_escape()

    def _cancel_own_wait(self) -> None:
        """Some wait for the reset themselves and then go on. mam does the waiting: the job is not to be done twice."""
        if self._session.tool in (CLAUDE, OPENCODE):
            self._press_escape()

    def _press_escape(self) -> None:
        try:
            press_key(self._session.target(), "Escape")
            if self._session.tool == OPENCODE:  # which wants to be told twice, and not in one breath
                time.sleep(LOOK_SECONDS)
                press_key(self._session.target(), "Escape")
        except MamError as error:
            self._crew.say(self.job, f"not broken off: {error}")


def _failed(turn: Turn | None) -> Ending | None:
    if turn is None:
        return None
    if turn.failure:
        return Ending(run={}, reason=f"its turn ended with {turn.failure}", retryable=turn.failure in _RETRYABLE)
    if turn.text is not None and turn.text.startswith(CANNOT):
        return Ending(run={}, reason=turn.text.removeprefix(CANNOT).strip()[:REASON_LIMIT] or "it cannot be done")
    return None


def first_line(text: str | None) -> str:
    return next(iter((text or "").strip().splitlines()), "")[:_WORDS_LIMIT]
