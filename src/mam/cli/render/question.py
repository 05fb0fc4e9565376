"""What a person reads before answering: the question, the exact input of the tool, and how to answer."""

from __future__ import annotations

from mam.cli.render.text import many_lines, one_line
from mam.jobs.question import PERMISSION, first_line
from mam.util.clock import parse_time
from mam.util.human_time import format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.questions import Asked
    from mam.util.clock import Moment

INDENT = "    "


def row_of(asked: Asked, now: Moment) -> tuple[str, ...]:
    """The columns of `mam questions`: id, age, agent, label, kind, question."""
    job, question = asked.job, asked.question
    age = format_age(now.wall_ms - parse_time(question.asked_at))
    text = f"{question.tool}: {first_line(_exact(asked))}" if question.tool else first_line(question.text)
    return short_id(asked), age, job.agent, job.agent_session, question.kind, one_line(text)


def short_id(asked: Asked) -> str:
    return f"{asked.job.job_id[:8]}.{asked.question.number}"


def whole_text(asked: Asked) -> str:
    """All that is asked, on several lines; control characters and invisible characters are visible escapes."""
    job, question = asked.job, asked.question
    head = f"Question {short_id(asked)} of job {job.job_id[:8]} ({one_line(job.agent)}, {one_line(job.agent_session)})"
    lines = [head, *_indented(question.text)]
    if question.kind == PERMISSION and question.tool is not None:
        lines += [f"{one_line(question.tool)}:", *_indented(_exact(asked))]
    if question.choices:
        lines += ["Choices:", *(INDENT + one_line(choice) for choice in question.choices)]
    if question.ends is not None:
        lines.append(f"Without an answer by {question.ends.expires_at}: {one_line(question.default)}.")
    return "\n".join(lines)


def _exact(asked: Asked) -> str:
    """The command of a shell tool as it is; the input of any other tool as JSON."""
    import json

    given = asked.question.input or {}
    command = given.get("command")
    if isinstance(command, str) and given.keys() <= {"command", "description", "timeout"}:
        return command
    return json.dumps(given, indent=2, ensure_ascii=False, default=str)


def _indented(text: str) -> list[str]:
    return [INDENT + line for line in many_lines(text).split("\n")]
