"""The asker of a worker: it stores the question under the claim of the attempt. Doors and live sessions end here."""

from __future__ import annotations

from threading import Condition

from mam import questions
from mam.errors import AnswerTooLate
from mam.jobs import question_acts
from mam.jobs.question import DENY, PERMISSION, Question, find_question, question_id
from mam.work.asking.port import LOOK_SECONDS, Decision, decision_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.question import Draft
    from mam.registry import Registry

PERMISSION_SECONDS = 3600.0
"""The deadline of a permission that names none."""


class WorkerAsker:
    """Asks for one attempt. Any thread may call it."""

    def __init__(
        self,
        registry: Registry,
        job_id: str,
        attempt: int,
        claim_id: str | None,
        *,
        permission_seconds: float | None = PERMISSION_SECONDS,
    ) -> None:
        self._registry = registry
        self._job_id = job_id
        self._attempt = attempt
        self._claim_id = claim_id
        self._permission_seconds = permission_seconds
        self._changed = Condition()
        self._changes = 0
        self._is_over = False
        self._decided: dict[int, Decision] = {}

    @property
    def decisions(self) -> list[Decision]:
        """What was decided in this attempt, as far as an asker has learned it."""
        return [*self._decided.values()]

    @property
    def changes(self) -> int:
        """Grows whenever the record may have changed."""
        return self._changes

    @property
    def denials(self) -> int:
        return sum(decision.outcome == DENY for decision in self.decisions)

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
        return self.learned(question)

    # -- its steps -----------------------------------------------------------------------------------------------

    def open(self, draft: Draft) -> Question:
        """The question as it was stored."""
        if draft.kind == PERMISSION and draft.deadline_seconds is None:
            draft = draft.replace(deadline_seconds=self._permission_seconds)
        asked = questions.ask(self._registry, self._job_id, draft, attempt=self._attempt, claim_id=self._claim_id)
        return asked.question

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
        decision = decision_of(question)
        self._decided[question.number] = decision
        return decision

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
