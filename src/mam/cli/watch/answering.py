"""Answering a question in `mam watch`: one key for each answer, for exactly the question that is on the screen."""

from __future__ import annotations

from rich.text import Text

from mam import questions
from mam.cli.render.question import short_id, what_always_covers, whole_lines
from mam.cli.render.text import one_line
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
_CHOICE_KEYS = "123456789"


class AnswerPrompt(Frozen):
    """A question on the screen that waits for a key."""

    asked: Asked

    @property
    def keys(self) -> dict[str, str]:
        """The answer of each key; a text cannot be typed here."""
        question = self.asked.question
        if question.kind == PERMISSION:
            return PERMISSION_KEYS
        return {**dict(zip(_CHOICE_KEYS, question.choices, strict=False)), "d": DENY}

    def footer(self) -> Text:
        keys = self.keys
        parts = [Text.assemble((key, "bold"), f" {one_line(answer)[:24]}") for key, answer in keys.items()]
        if len(keys) == 1:
            parts.append(Text(f"mam answer {short_id(self.asked)} TEXT, in a terminal"))
        return Text("   ").join([Text("answer:", style="bold magenta"), *parts, Text("Esc later", style="dim")])


def prompt_for(job: Job) -> AnswerPrompt | None:
    """For the oldest open question of the job."""
    open_now = open_questions(job)
    return AnswerPrompt(asked=Asked(job=job, question=open_now[0])) if open_now else None


def question_lines(asked: Asked, width: int) -> list[Text]:
    """The whole question, for the top of the page of its job."""
    question = asked.question
    lines = [Text.assemble("  ", *line) for line in whole_lines(question, width - 2)]
    if question.kind == PERMISSION:
        lines.append(Text(f"  {what_always_covers(question)}", style="dim"))
    return [Text(f"ASKS  {short_id(asked)}", style="bold magenta"), *lines, Text()]


def give(registry: Registry, prompt: AnswerPrompt, answer: str, by: str) -> str:
    """Answers what was shown; returns what to say about it. Raises MamError if another answer was first."""
    check_outside_agents("answer")
    question = prompt.asked.question
    given = Answer(number=question.number, attempt=question.attempt, digest=question.digest, answer=answer, by=by)
    questions.answer(registry, prompt.asked.job.job_id, given)
    return f"{short_id(prompt.asked)}: {answer}"
