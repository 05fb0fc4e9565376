"""What a job asks while a person follows its output: shown whole in the conversation, answered with a key."""

from __future__ import annotations

from mam.cli.answer_prompt import Given, give, prompt_for
from mam.cli.keyboard import Keyboard
from mam.cli.render.question import how_to_answer, one_row, short_id, what_always_covers
from mam.cli.render.streams import say
from mam.errors import MamError
from mam.jobs.question import PERMISSION
from mam.machine.person import user_at_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from mam.cli.answer_prompt import AnswerPrompt
    from mam.cli.render.conversation_stream import ConversationPrinter
    from mam.cli.render.prose import StyledLine
    from mam.jobs.record import Job
    from mam.registry import Registry


class QuestionNotes:
    """For output that is no conversation: one message for each question."""

    def __init__(self) -> None:
        self._told = 0

    def look(self, job: Job | None) -> None:
        prompt = None if job is None else prompt_for(job)
        if prompt is not None and prompt.asked.question.number > self._told:
            self._told = prompt.asked.question.number
            asked = prompt.asked
            say(f"{short_id(asked)} asks: {one_row(asked.question)}; `{prompt.command}` answers it")


class LiveQuestion:
    """The oldest open question of the job. The keys that answer it are named in the last line of the screen."""

    def __init__(self, registry: Registry, printer: ConversationPrinter) -> None:
        self._registry = registry
        self._printer = printer
        self._keyboard = Keyboard()
        self._prompt: AnswerPrompt | None = None
        self._told = 0
        """The number of the last question that was shown."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._leave()

    def look(self, job: Job | None) -> None:
        """Call it again and again, with the job as it is now, or None if its attempt has ended."""
        prompt = None if job is None else prompt_for(job)
        if prompt is None or self._prompt is None or _number(prompt) != _number(self._prompt):
            self._change_to(prompt)
        else:
            self._press(self._keyboard.read())

    def _change_to(self, prompt: AnswerPrompt | None) -> None:
        if prompt is None or _number(prompt) <= self._told:
            self._leave()
            return
        self._prompt, self._told = prompt, _number(prompt)
        self._printer.ask(prompt.asked.question)
        # Keys typed before the question appeared do not answer it.
        self._printer.stand(_hint(prompt, has_keys=self._keyboard.open()))

    def _press(self, keys: str) -> None:
        prompt = self._prompt
        answer = next((prompt.keys[key] for key in keys if key in prompt.keys), None) if prompt is not None else None
        if prompt is None or answer is None:
            return
        self._leave()
        try:
            give(self._registry, prompt, Given(answer=answer), user_at_host())
        except MamError as error:
            self._printer.note(str(error))

    def _leave(self) -> None:
        self._prompt = None
        self._keyboard.close()
        self._printer.stand([])


def _number(prompt: AnswerPrompt) -> int:
    return prompt.asked.question.number


def _hint(prompt: AnswerPrompt, *, has_keys: bool) -> list[StyledLine]:
    question = prompt.asked.question
    lines: list[StyledLine] = [[(f"    {what_always_covers(question)}", "dim")]] if question.kind == PERMISSION else []
    if not has_keys:
        return [*lines, [(f"    {prompt.command} {how_to_answer(question)}", "bold")]]
    line: StyledLine = [("    ", "")]
    for key, answer in prompt.key_words:
        line += [(f"[{key}]", "bold"), (f" {answer}  ", "")]
    command = f"{prompt.command} TEXT" if prompt.takes_text else prompt.command
    return [*lines, [*line, (f"    or: {command}", "dim")]]
