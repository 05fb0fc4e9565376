"""Answering a question in `mam watch`, by a key or a typed text: exactly the question that is on the screen."""

from __future__ import annotations

from rich.text import Text

from mam import questions
from mam.cli.answer_prompt import CHOICE_KEYS, AnswerPrompt, Given, give, prompt_for
from mam.cli.render.prose import wrap
from mam.cli.render.question import answer_lines, short_id, text_lines, what_always_covers
from mam.cli.render.text import one_line
from mam.cli.watch.keys import ENTER, ESCAPE, RUBOUT, RUBOUT_ALL, RUBOUT_WORD
from mam.jobs.human_answer import HumanAnswer, is_for_person
from mam.jobs.input_rules import REASON_LIMIT, TEXT_LIMIT, check_text
from mam.jobs.question import DENY, PERMISSION, QUESTION, Question
from mam.machine.agent_tree import check_outside_agents
from mam.questions import Asked
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.registry import Registry

TYPE, REASON, UNFOLD = "t", "r", "f"
FOLDED_LEAST = 6
"""Lines of a question that are shown on any screen."""
_FEW_CHOICES = 3


class QuestionOnScreen(Frozen):
    """A question that waits for a key, or for the end of a text."""

    prompt: AnswerPrompt
    is_unfolded: bool = False
    typed: str | None = None
    """The text so far; None while a key is awaited."""
    is_reason: bool = False
    """Whether the text is the reason of a denial."""

    @property
    def asked(self) -> Asked:
        return self.prompt.asked

    @property
    def name(self) -> str:
        return short_id(self.asked) if self.asked.question.number else self.asked.job.job_id[:8]

    @property
    def takes_text(self) -> bool:
        """Also a question with more choices than there are keys."""
        return self.prompt.takes_text or len(self.asked.question.choices) > len(CHOICE_KEYS)

    def press(self, key: str, *, is_pasted: bool = False) -> QuestionOnScreen | Given | None:
        """The question after this key, or the answer, or None: it stays open."""
        if self.typed is not None:
            return self._type(key, is_pasted=is_pasted)
        if is_pasted:
            return self
        if key in self.prompt.keys:
            return Given(answer=self.prompt.keys[key])
        if key == UNFOLD:
            return self.replace(is_unfolded=not self.is_unfolded)
        if key == REASON or (key == TYPE and self.takes_text):
            return self.replace(typed="", is_reason=key == REASON)
        return None

    def _type(self, key: str, *, is_pasted: bool) -> QuestionOnScreen | Given:
        typed = self.typed or ""
        if key == ENTER and not is_pasted:
            return Given(answer=DENY, reason=typed.strip() or None) if self.is_reason else Given(answer=typed.strip())
        if key == ESCAPE:
            return self.replace(typed=None, is_reason=False)
        return self.replace(typed=_edited(typed, "\n" if key == ENTER else key))

    def footer(self, width: int, hidden: int) -> Text:
        """The keys, or the end of what was typed. `hidden` lines of the question are folded."""
        if self.typed is not None:
            return self._input(self.typed, width)
        keys = self.prompt.key_words
        if len(self.asked.question.choices) > _FEW_CHOICES:
            keys = [(f"1-{len(keys) - 1}", "a choice"), *keys[-1:]]
        more = [
            *([(TYPE, "type an answer")] if self.takes_text else []), (REASON, "deny with a reason"),
            *([(UNFOLD, "unfold" if hidden else "fold")] if hidden or self.is_unfolded else []), ("Esc", "later"),
        ]  # fmt: skip
        line = _line_of_keys(keys, more)
        return line if line.cell_len <= width else _line_of_keys(keys, [(key, what.split()[0]) for key, what in more])

    def _input(self, typed: str, width: int) -> Text:
        label = "reason: " if self.is_reason else "answer: "
        hint = "  ⏎ denies  Esc back" if self.is_reason else "  ⏎ answers  Esc back"
        shown = Text(one_line(typed.replace("\n", "⏎")))
        room = max(8, width - len(label) - len(hint) - 1)
        while shown.cell_len > room:
            shown = Text("…") + shown[max(2, shown.cell_len - room) :]
        return Text.assemble((label, "bold magenta"), shown, (" ", "reverse"), (hint, "dim"))


def _line_of_keys(answers: list[tuple[str, str]], more: list[tuple[str, str]]) -> Text:
    parts = [Text.assemble((key, "bold"), f" {answer}") for key, answer in answers]
    return Text("  ").join([*parts, *(Text.assemble((key, "bold"), (f" {what}", "dim")) for key, what in more)])


def _edited(text: str, key: str) -> str:
    if key == RUBOUT:
        return text[:-1]
    if key == RUBOUT_ALL:
        return ""
    if key == RUBOUT_WORD:
        kept = text.rstrip()
        return kept[: len(kept) - len(kept.split()[-1])] if kept else ""
    return text + key if len(key) == 1 else text


def question_of(job: Job) -> QuestionOnScreen | None:
    """The oldest open question of the job, or the job of a person itself, as question 0."""
    prompt = prompt_for(job)
    if prompt is None and is_for_person(job):
        whole = Question(
            number=0, attempt=job.attempt, kind=QUESTION, text=job.prompt, digest="", asked_at=job.created_at
        )
        prompt = AnswerPrompt(asked=Asked(job=job, question=whole))
    return None if prompt is None else QuestionOnScreen(prompt=prompt)


def question_lines(shown: QuestionOnScreen, width: int, room: int) -> tuple[list[Text], int]:
    """The question, for the top of the page of its job, and how many lines of it are folded. Folding leaves half of
    the screen for the rest."""
    question = shown.asked.question
    asked = [Text.assemble("  ", *line) for line in text_lines(question, width - 2)]
    most = max(FOLDED_LEAST, room // 2)
    hidden = 0 if shown.is_unfolded or len(asked) <= most else len(asked) - most + 1
    if hidden:
        asked = [*asked[:-hidden], Text(f"  … {hidden:,} more lines; f shows them", style="bold yellow")]
    lines = [Text.assemble("  ", *line) for line in answer_lines(question, width - 2, CHOICE_KEYS)]
    if question.kind == PERMISSION:
        covers = wrap([(what_always_covers(question), "dim")], width - 2)
        lines += [Text.assemble("  ", *line) for line in covers]
    return [Text(f"ASKS  {shown.name}", style="bold magenta"), *asked, *lines, Text()], hidden


def answer(registry: Registry, shown: QuestionOnScreen, given: Given, by: str) -> str:
    """Answers what was shown; returns what to say about it. Raises MamError if another answer was first."""
    if shown.asked.question.number:
        return give(registry, shown.prompt, given, by)
    check_outside_agents("answer")
    done = HumanAnswer(
        answer=check_text("answer", given.answer, TEXT_LIMIT), by=by, seen=shown.asked.job,
        reason=None if given.reason is None else check_text("reason", given.reason, REASON_LIMIT),
    )  # fmt: skip
    return f"{shown.name}: {questions.answer_human(registry, done).status}"
