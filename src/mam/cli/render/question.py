"""What a person reads before answering: the question, the exact command or change, and how to answer."""

from __future__ import annotations

from mam.cli.render.prose import fold
from mam.cli.render.text import one_line
from mam.jobs.asked_text import ADDED, PLAIN, REMOVED, TITLE, asked_lines, short_text
from mam.jobs.question import ALWAYS, PERMISSION, first_line
from mam.jobs.rules import sameness
from mam.util.clock import parse_time
from mam.util.human_time import format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.render.prose import StyledLine
    from mam.jobs.question import Question
    from mam.jobs.record import Job
    from mam.questions import Asked
    from mam.util.clock import Moment

INDENT = "    "
FOLDED = "  ↳ "
"""Begins the rest of a line that is longer than the terminal is wide."""
WIDTH = 100

_STYLES = {PLAIN: "cyan", TITLE: "bold", REMOVED: "red", ADDED: "green"}


def row_of(asked: Asked, now: Moment) -> tuple[str, ...]:
    """The columns of `mam questions`: id, age, agent, label, kind, question."""
    job, question = asked.job, asked.question
    age = format_age(now.wall_ms - parse_time(question.asked_at))
    return short_id(asked), age, job.agent, job.agent_session, question.kind, one_row(question)


def row_of_job(job: Job, now: Moment) -> tuple[str, ...]:
    """The same for a job that a person has to do."""
    age = format_age(now.wall_ms - parse_time(job.created_at))
    return job.job_id[:8], age, job.agent, job.agent_session, "job", one_line(first_line(job.prompt))


def one_row(question: Question) -> str:
    return one_line(first_line(short_text(question)))


def short_id(asked: Asked) -> str:
    return f"{asked.job.job_id[:8]}.{asked.question.number}"


def whole_text(asked: Asked, width: int = WIDTH) -> str:
    """All that is asked, on several lines; control characters and invisible characters are visible escapes."""
    job = asked.job
    head = f"Question {short_id(asked)} of job {job.job_id[:8]} ({one_line(job.agent)}, {one_line(job.agent_session)})"
    lines = whole_lines(asked.question, width - len(INDENT))
    return "\n".join([head, *("".join([INDENT, *(text for text, _ in line)]) for line in lines)])


def whole_lines(question: Question, width: int) -> list[StyledLine]:
    """The same, styled. Long lines are folded and never cut."""
    return [*text_lines(question, width), *answer_lines(question, width)]


def text_lines(question: Question, width: int) -> list[StyledLine]:
    """What is asked."""
    lines: list[StyledLine] = []
    for line in asked_lines(question):
        style = _STYLES[line.mark] if question.tool is not None else ""
        mark = line.mark if line.mark in (REMOVED, ADDED) else ""
        lines += _folded(f"{mark}{_visible(line.text)}", style, width)
    return lines


def answer_lines(question: Question, width: int, keys: str = "") -> list[StyledLine]:
    """The choices, the first ones with these keys, and the deadline."""
    lines: list[StyledLine] = [[("Choices:", "bold")]] if question.choices else []
    for at, choice in enumerate(question.choices):
        lines += _folded(f"{keys[at] if at < len(keys) else '-'} {_visible(choice)}", "", width)
    if question.ends is not None:
        lines += _folded(
            f"Without an answer by {question.ends.expires_at}: {_visible(question.default)}.", "dim", width
        )
    return lines


def how_to_answer(question: Question) -> str:
    """The answers that it takes; a permission says what `always` covers."""
    if question.kind != PERMISSION:
        return "|".join(map(_visible, question.choices)) or "TEXT"
    return f"allow|deny|{ALWAYS}"


def what_always_covers(question: Question) -> str:
    """For a person who may answer `always`."""
    if sameness(question.tool, question.input) is None:
        return "always allows only this once: a rule never covers shell operators, substitutions or newlines"
    same = sameness(question.tool, question.input) or ()
    what = "this tool on the same file" if "at" in same[1:2] else "the same use of this tool"
    what = "this command" if (question.input or {}).keys() & {"command", "cmd"} else what
    return f"always also allows {what} again, in this job and its continuations"


def _folded(text: str, style: str, width: int) -> list[StyledLine]:
    if len(text) <= width and text.isascii():
        return [[(text, style)]]
    first, *rest = fold(text, width - len(FOLDED)) or [""]
    return [[(first, style)], *([(FOLDED, "dim"), (piece, style)] for piece in rest)]


def _visible(text: str) -> str:
    return one_line(text.expandtabs(4))
