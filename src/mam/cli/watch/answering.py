"""How `mam watch` shows the question that a key answers."""

from __future__ import annotations

from rich.text import Text

from mam.cli.render.question import short_id, what_always_covers, whole_lines
from mam.jobs.question import PERMISSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.answer_prompt import AnswerPrompt
    from mam.questions import Asked


def answer_footer(prompt: AnswerPrompt) -> Text:
    parts = [Text.assemble((key, "bold"), f" {answer}") for key, answer in prompt.key_words]
    if prompt.takes_text:
        parts.append(Text(f"{prompt.command} TEXT, in a terminal"))
    return Text("   ").join([Text("answer:", style="bold magenta"), *parts, Text("Esc later", style="dim")])


def question_lines(asked: Asked, width: int) -> list[Text]:
    """The whole question, for the top of the page of its job."""
    question = asked.question
    lines = [Text.assemble("  ", *line) for line in whole_lines(question, width - 2)]
    if question.kind == PERMISSION:
        lines.append(Text(f"  {what_always_covers(question)}", style="dim"))
    return [Text(f"ASKS  {short_id(asked)}", style="bold magenta"), *lines, Text()]
