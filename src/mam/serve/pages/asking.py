"""A question as a row that can be answered in place. Pure.

It shows exactly what is asked: a command as it would run, a change as a diff, any other input as JSON. The form carries
the attempt and the digest of what was shown, so an answer to another question is refused.
"""

from __future__ import annotations

import json

from mam.jobs.question import ALLOW, ALWAYS, DENY, PERMISSION
from mam.serve.pages.actions import short_id
from mam.serve.pages.diffs import ADDED, REMOVED, DiffLine
from mam.serve.pages.moments import When, age, left
from mam.serve.pages.rows import title_of
from mam.util.frozen import Frozen
from mam.util.safe_text import many_lines, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json
    from mam.questions import Asked

_SHELL_FIELDS = {"command", "description", "timeout"}
_CHANGE_FIELDS = (("old_string", "new_string"), ("oldString", "newString"), ("old_text", "new_text"))
_PATHS = ("file_path", "filePath", "path", "notebook_path")
_FLAGS = ("replace_all", "replaceAll")
_DIFF_LINES = 2_000
SHORT_CHOICE = 12
"""Characters of a choice that fit into half the width of a phone."""


class Choice(Frozen):
    """A button: the answer that it sends and its label."""

    answer: str
    label: str
    is_main: bool = False


class QuestionRow(Frozen):
    id: str
    """JOB.NUMBER, whole, for the address of the form."""
    short: str
    job_id: str
    attempt: int
    digest: str
    title: str
    agent: str
    label: str
    kind: str
    asked: When | None
    said: str
    """The agent's last sentence."""
    text: str
    """What it asks, in words."""
    tool: str
    command: str
    """The command or input, whole."""
    change: tuple[DiffLine, ...]
    path: str
    choices: tuple[Choice, ...]
    always: bool
    """Whether it can be allowed for the rest of the job."""
    free_text: bool
    is_long: bool
    """Whether a choice is too long for half the width of a phone."""
    deadline: When | None
    default: str
    answer_command: str


def question_row(asked: Asked, now_ms: int, said: str = "") -> QuestionRow:
    job, question = asked.job, asked.question
    short = f"{short_id(job)}.{question.number}"
    is_permission = question.kind == PERMISSION
    given: Json = question.input or {}
    change, path = _change(given) if question.tool else ((), "")
    example = ALLOW if is_permission else (question.choices[0] if question.choices else '"…"')
    text = many_lines(question.text.strip())
    command = many_lines(_exact(given)) if question.tool and not change else ""
    return QuestionRow(
        id=asked.id, short=short, job_id=job.job_id, attempt=question.attempt, digest=question.digest,
        title=title_of(job), agent=one_line(job.agent), label=one_line(job.agent_session), kind=question.kind,
        asked=age(question.asked_at, now_ms), said="" if said and said in text else said,
        text="" if text == command else text,
        tool=one_line(question.tool or ""), command=command, change=change, path=path,
        choices=_choices(question.kind, question.choices), always=is_permission,
        free_text=not is_permission and not question.choices,
        is_long=any(len(choice) > SHORT_CHOICE for choice in question.choices),
        deadline=None if question.ends is None else left(question.ends.expires_at, now_ms),
        default=one_line(question.default), answer_command=f"mam answer {short} {one_line(example)}",
    )  # fmt: skip


def _choices(kind: str, choices: list[str]) -> tuple[Choice, ...]:
    if kind == PERMISSION:
        return (Choice(answer=ALLOW, label="Allow once", is_main=True), Choice(answer=DENY, label="Deny"))
    return tuple(Choice(answer=choice, label=one_line(choice)) for choice in choices)


def _exact(given: Json) -> str:
    """The command of a shell tool as it is; the input of any other tool as JSON."""
    command = given.get("command")
    if isinstance(command, str) and given.keys() <= _SHELL_FIELDS:
        return command
    return json.dumps(given, indent=2, ensure_ascii=False, default=str) if given else ""


def _change(given: Json) -> tuple[tuple[DiffLine, ...], str]:
    """What an edit would replace. Only if the input holds nothing else that a person should see."""
    paths = [name for name in _PATHS if name in given]
    path = given[paths[0]] if len(paths) == 1 else ""
    for before, after in _CHANGE_FIELDS:
        old, new = given.get(before), given.get(after)
        rest = given.keys() - {before, after, *paths} - {name for name in _FLAGS if given.get(name) is False}
        if path and isinstance(path, str) and isinstance(old, str) and isinstance(new, str) and not rest:
            lines = [*_lines(REMOVED, old), *_lines(ADDED, new)]
            return (tuple(lines), one_line(path)) if len(lines) <= _DIFF_LINES else ((), "")
    return (), ""


def _lines(kind: str, text: str) -> list[DiffLine]:
    return [DiffLine(kind=kind, text=one_line(line.expandtabs(4))) for line in text.split("\n")] if text else []


ANSWERED = {ALLOW: "allowed", DENY: "denied", ALWAYS: "allowed for this job"}
