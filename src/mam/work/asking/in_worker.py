"""The asker of a worker: it stores the question under the claim of the attempt. Doors and live sessions end here, and
so does `mam ask` of a script that holds its job without a worker."""

from __future__ import annotations

from functools import partial
from threading import Condition

from mam import questions
from mam.errors import AnswerTooLate, MamError
from mam.jobs import question_acts
from mam.jobs.acts import check_fence
from mam.jobs.question import (
    ANSWERED,
    OPEN,
    PERMISSION,
    Question,
    check_draft,
    digest_of,
    find_question,
    question_id,
    questions_of,
)
from mam.work.asking.denials import Denials, denials_of
from mam.work.asking.policy import Policy, closed_by, verdict_of, what_is_asked
from mam.work.asking.port import LOOK_SECONDS, Decision, decision_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.question import Draft
    from mam.registry import Registry


class WorkerAsker:
    """Asks for one attempt. Any thread may call it."""

    def __init__(
        self,
        registry: Registry,
        job_id: str,
        attempt: int,
        claim_id: str | None,
        policy: Policy,
    ) -> None:
        self._registry = registry
        self._job_id = job_id
        self._attempt = attempt
        self._claim_id = claim_id
        self._policy = policy
        self._changed = Condition()
        self._changes = 0
        self._is_over = False
        self._learned: list[Question] = []

    @property
    def denials(self) -> Denials:
        """What was refused, as far as the agent has learned it."""
        return denials_of(self._learned)

    @property
    def changes(self) -> int:
        """Grows whenever the record may have changed."""
        return self._changes

    # -- one call ------------------------------------------------------------------------------------------------

    def decide(self, draft: Draft, is_over: Callable[[], bool] = lambda: False) -> Decision:
        seen = self._changes
        question = self.open(draft)
        while question.is_open:
            if self._is_over:
                return decision_of(question.replace(state="withdrawn"))
            if is_over():
                return decision_of(self.withdraw(question.number))
            with self._changed:
                if self._changes == seen:
                    self._changed.wait(LOOK_SECONDS)
                seen = self._changes
            question = self.find(question.number)
        return self.learned(question) if question.number else decision_of(question)

    # -- its steps -----------------------------------------------------------------------------------------------

    def open(self, draft: Draft) -> Question:
        """The question as it was stored, or as a rule has closed it."""
        if draft.kind != PERMISSION:
            asked_before = self._asked_before(draft)
            if asked_before is not None:
                return asked_before
        else:
            decided = self._decided_without_person(draft)
            if decided is not None:
                return decided
            if draft.deadline_seconds is None:
                draft = draft.replace(deadline_seconds=self._policy.permission_seconds)
        asked = questions.ask(self._registry, self._job_id, draft, attempt=self._attempt, claim_id=self._claim_id)
        return asked.question

    def _decided_without_person(self, draft: Draft) -> Question | None:
        job = self._registry.store.get(self._job_id)
        verdict = verdict_of(self._registry, self._policy, job, check_draft(draft))
        if verdict is None:
            return None
        act = partial(
            question_acts.decide, attempt=self._attempt, claim_id=self._claim_id, draft=draft, answer=verdict.answer,
            rule=verdict.rule, what=what_is_asked(self._policy, draft),
        )  # fmt: skip
        job = self._registry.act(self._job_id, "decide", act)
        question = closed_by(verdict, draft, self._attempt, job.updated_at)
        self.learned(question)
        return question

    def _asked_before(self, draft: Draft) -> Question | None:
        """The same question of this attempt: an agent that ended a command which waited for long runs it again."""
        digest = digest_of(draft)
        job = self._registry.store.get(self._job_id)
        check_fence(job, self._attempt, self._claim_id)
        same = [one for one in questions_of(job) if one.attempt == self._attempt and one.digest == digest]
        return next((one for one in reversed(same) if one.state in (OPEN, ANSWERED)), None)

    def find(self, number: int) -> Question:
        """The question as it is now; a deadline that has passed is applied first."""
        self._registry.sweep_if_due()
        question = find_question(self._registry.store.get(self._job_id), number)
        if question is None or question.attempt != self._attempt:
            raise AnswerTooLate(
                question=question_id(self._job_id, number), why="is not a question of this attempt, or was dropped"
            )
        return question

    def learned(self, question: Question) -> Decision:
        """The decision of a closed question, which the agent gets now."""
        if question not in self._learned or not question.number:
            self._learned.append(question)
        return decision_of(question)

    def withdraw(self, number: int) -> Question:
        """The agent no longer waits. A question that was closed before keeps its answer."""
        act = question_acts.withdraw
        job = self._registry.act(
            self._job_id, "withdraw",
            lambda job, now: act(job, now, attempt=self._attempt, claim_id=self._claim_id, number=number),
        )  # fmt: skip
        question = find_question(job, number)
        assert question is not None
        return question

    def abandon(self, number: int) -> None:
        """The process that waited has ended. A tool that needs permission ended with it; the answer to a question is
        still of use when the agent asks it again."""
        try:
            if self.find(number).kind == PERMISSION:
                self.withdraw(number)
        except MamError:
            return

    # -- from the worker -----------------------------------------------------------------------------------------

    def record_changed(self) -> None:
        """The journal has an entry of this job, or the attempt is being stopped."""
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    def close(self) -> None:
        """The attempt ends, and its questions are withdrawn with it."""
        self._is_over = True
        self.record_changed()
