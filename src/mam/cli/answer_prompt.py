"""A question on the screen that waits for a key: the answer of each key, for exactly the question that is shown."""

from __future__ import annotations

from mam import questions
from mam.cli.render.question import short_id
from mam.cli.render.text import one_line
from mam.jobs.input_rules import REASON_LIMIT, check_text
from mam.jobs.question import ALLOW, ALWAYS, DENY, PERMISSION, open_questions
from mam.jobs.question_acts import Answer
from mam.machine.agent_tree import check_outside_agents
from mam.questions import Asked
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.registry import Registry

PERMISSION_KEYS = {"a": ALLOW, "d": DENY, "A": ALWAYS}
CHOICE_KEYS = "123456789"
_SHOWN = 24
"""Characters of an answer beside its key."""


class Given(Frozen):
    """What the person answered."""

    answer: str
    reason: str | None = None


class AnswerPrompt(Frozen):
    asked: Asked

    @property
    def keys(self) -> dict[str, str]:
        """The answer of each key; a text cannot be typed as a key."""
        question = self.asked.question
        if question.kind == PERMISSION:
            return PERMISSION_KEYS
        return {**dict(zip(CHOICE_KEYS, question.choices, strict=False)), "d": DENY}

    @property
    def key_words(self) -> list[tuple[str, str]]:
        """Each key and its answer, as a line shows them."""
        return [(key, one_line(answer)[:_SHOWN]) for key, answer in self.keys.items()]

    @property
    def takes_text(self) -> bool:
        """Whether only `mam answer` can give the answer."""
        return self.asked.question.kind != PERMISSION and not self.asked.question.choices

    @property
    def command(self) -> str:
        return f"mam answer {short_id(self.asked)}"


def prompt_for(job: Job) -> AnswerPrompt | None:
    """For the oldest open question of the job."""
    open_now = open_questions(job)
    return AnswerPrompt(asked=Asked(job=job, question=open_now[0])) if open_now else None


def give(registry: Registry, prompt: AnswerPrompt, given: Given, by: str) -> str:
    """Answers what was shown; returns what to say about it. Raises MamError if another answer was first."""
    check_outside_agents("answer")
    question = prompt.asked.question
    reason = None if given.reason is None else check_text("reason", given.reason, REASON_LIMIT)
    answer = Answer(
        number=question.number, attempt=question.attempt, digest=question.digest, answer=given.answer, by=by,
        reason=reason,
    )  # fmt: skip
    questions.answer(registry, prompt.asked.job.job_id, answer)
    return f"{short_id(prompt.asked)}: {given.answer}"
