"""Answering a question in `mam watch`, by a key or a typed text: exactly the question that is on the screen."""

from __future__ import annotations

from rich.text import Text

from mam import questions
from mam.cli.render.prose import wrap
from mam.cli.render.question import answer_lines, short_id, text_lines, what_always_covers
from mam.cli.render.text import one_line
from mam.cli.watch.keys import ENTER, ESCAPE, RUBOUT, RUBOUT_ALL, RUBOUT_WORD
from mam.jobs.human_answer import HumanAnswer, is_for_person
from mam.jobs.input_rules import REASON_LIMIT, TEXT_LIMIT, check_text
from mam.jobs.question import ALLOW, ALWAYS, DENY, PERMISSION, QUESTION, Question, open_questions
from mam.jobs.question_acts import Answer
from mam.machine.agent_tree import check_outside_agents
from mam.questions import Asked
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.registry import Registry

PERMISSION_KEYS = {"a": ALLOW, "A": ALWAYS, "d": DENY}
CHOICE_KEYS = "123456789"
TYPE, REASON, UNFOLD = "t", "r", "f"
FOLDED_LEAST = 6
"""Lines of a question that are shown on any screen."""
_PASTED_ENTER = "\n"


class Given(Frozen):
    """What the person answered."""

    answer: str
    reason: str | None = None


class AnswerPrompt(Frozen):
    """A question on the screen that waits for a key, or for the end of a text."""

    asked: Asked
    is_unfolded: bool = False
    typed: str | None = None
    """The text so far; None while a key is awaited."""
    is_reason: bool = False
    """Whether the text is the reason of a denial."""

    @property
    def keys(self) -> dict[str, str]:
        """The answer of each key."""
        question = self.asked.question
        if question.kind == PERMISSION:
            return PERMISSION_KEYS
        return {**dict(zip(CHOICE_KEYS, question.choices, strict=False)), "d": DENY}

    @property
    def name(self) -> str:
        return short_id(self.asked) if self.asked.question.number else self.asked.job.job_id[:8]

    @property
    def takes_text(self) -> bool:
        """Also a question with more choices than there are keys."""
        question = self.asked.question
        return question.kind != PERMISSION and (not question.choices or len(question.choices) > len(CHOICE_KEYS))

    def press(self, key: str, *, is_pasted: bool = False) -> AnswerPrompt | Given | None:
        """The prompt after this key, or the answer, or None: the question stays open."""
        if self.typed is not None:
            return self._type(key, is_pasted=is_pasted)
        if is_pasted:
            return self
        if key in self.keys:
            return Given(answer=self.keys[key])
        if key == UNFOLD:
            return self.replace(is_unfolded=not self.is_unfolded)
        if key == REASON or (key == TYPE and self.takes_text):
            return self.replace(typed="", is_reason=key == REASON)
        return None

    def _type(self, key: str, *, is_pasted: bool) -> AnswerPrompt | Given:
        typed = self.typed or ""
        if key == ENTER and not is_pasted:
            return Given(answer=DENY, reason=typed.strip() or None) if self.is_reason else Given(answer=typed.strip())
        if key == ESCAPE:
            return self.replace(typed=None, is_reason=False)
        return self.replace(typed=_edited(typed, _PASTED_ENTER if key == ENTER else key))

    def footer(self, width: int, hidden: int) -> Text:
        """The keys, or the end of what was typed. `hidden` lines of the question are folded."""
        if self.typed is not None:
            return self._input(width)
        question = self.asked.question
        keys = list(self.keys.items())
        if len(question.choices) > 3:
            keys = [(f"1-{len(keys) - 1}", "a choice"), *keys[-1:]]
        more = [
            *([(TYPE, "type an answer")] if self.takes_text else []), (REASON, "deny with a reason"),
            *([(UNFOLD, "unfold" if hidden else "fold")] if hidden or self.is_unfolded else []), ("Esc", "later"),
        ]  # fmt: skip
        parts = [Text.assemble((key, "bold"), f" {one_line(what)[:16]}") for key, what in keys]
        parts += [Text.assemble((key, "bold"), (f" {what}", "dim")) for key, what in more]
        line = Text("  ").join(parts)
        return line if line.cell_len <= width else Text("  ").join([*parts[: len(keys)], *_short(more)])

    def _input(self, width: int) -> Text:
        label = "reason: " if self.is_reason else "answer: "
        hint = "  ⏎ denies  Esc back" if self.is_reason else "  ⏎ answers  Esc back"
        shown = Text(one_line((self.typed or "").replace("\n", "⏎")))
        room = max(8, width - len(label) - len(hint) - 1)
        while shown.cell_len > room:
            shown = Text("…") + shown[max(2, shown.cell_len - room) :]
        return Text.assemble((label, "bold magenta"), shown, (" ", "reverse"), (hint, "dim"))


def _short(keys: list[tuple[str, str]]) -> list[Text]:
    """For a narrow terminal."""
    return [Text.assemble((key, "bold"), (f" {what.split()[0]}", "dim")) for key, what in keys]


def _edited(text: str, key: str) -> str:
    if key == RUBOUT:
        return text[:-1]
    if key == RUBOUT_ALL:
        return ""
    if key == RUBOUT_WORD:
        kept = text.rstrip()
        return kept[: len(kept) - len(kept.split()[-1])] if kept else ""
    return text + key if len(key) == 1 else text


def prompt_for(job: Job) -> AnswerPrompt | None:
    """For the oldest open question of the job, or for the job of a person itself, as question 0."""
    open_now = open_questions(job)
    if not open_now and is_for_person(job):
        whole = Question(
            number=0, attempt=job.attempt, kind=QUESTION, text=job.prompt, digest="", asked_at=job.created_at
        )
        open_now = [whole]
    return AnswerPrompt(asked=Asked(job=job, question=open_now[0])) if open_now else None


def question_lines(prompt: AnswerPrompt, width: int, room: int) -> tuple[list[Text], int]:
    """The question, for the top of the page of its job, and how many lines of it are folded. Folding leaves half of
    the screen for the rest."""
    question = prompt.asked.question
    asked = [Text.assemble("  ", *line) for line in text_lines(question, width - 2)]
    most = max(FOLDED_LEAST, room // 2)
    hidden = 0 if prompt.is_unfolded or len(asked) <= most else len(asked) - most + 1
    if hidden:
        asked = [*asked[:-hidden], Text(f"  … {hidden:,} more lines; f shows them", style="bold yellow")]
    lines = [Text.assemble("  ", *line) for line in answer_lines(question, width - 2, CHOICE_KEYS)]
    if question.kind == PERMISSION:
        covers = wrap([(what_always_covers(question), "dim")], width - 2)
        lines += [Text.assemble("  ", *line) for line in covers]
    return [Text(f"ASKS  {prompt.name}", style="bold magenta"), *asked, *lines, Text()], hidden


def give(registry: Registry, prompt: AnswerPrompt, given: Given, by: str) -> str:
    """Answers what was shown; returns what to say about it. Raises MamError if another answer was first."""
    check_outside_agents("answer")
    question = prompt.asked.question
    reason = None if given.reason is None else check_text("reason", given.reason, REASON_LIMIT)
    if not question.number:
        check_text("answer", given.answer, TEXT_LIMIT)
        done = HumanAnswer(answer=given.answer, by=by, seen=prompt.asked.job, reason=reason)
        return f"{prompt.name}: {questions.answer_human(registry, done).status}"
    answer = Answer(
        number=question.number, attempt=question.attempt, digest=question.digest, answer=given.answer, by=by,
        reason=reason,
    )  # fmt: skip
    questions.answer(registry, prompt.asked.job.job_id, answer)
    return f"{prompt.name}: {given.answer}"
