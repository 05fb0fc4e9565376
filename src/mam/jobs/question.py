"""A question: something that a job needs from a person.

An agent asks under its claim. The question and its answer are part of the record, so every store keeps them in the same
act as the job. The first answer wins; a later one is refused. When the attempt ends, its open questions are withdrawn
(mam.jobs.change.moved), and when a deadline passes, the sweep applies the action that the question names.
"""

from __future__ import annotations

from mam.errors import BadInput, BadRecord
from mam.jobs.input_rules import check_seconds
from mam.jobs.lease import Lease
from mam.util.clock import parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.jobs.record import Job, Json

OPEN, ANSWERED, EXPIRED, WITHDRAWN = "open", "answered", "expired", "withdrawn"
STATES = (OPEN, ANSWERED, EXPIRED, WITHDRAWN)

PERMISSION, QUESTION, REVIEW, LIMIT = "permission", "question", "review", "limit"
KINDS = (PERMISSION, QUESTION, REVIEW, LIMIT)

ALLOW, DENY, ALWAYS = "allow", "deny", "always"
DECISIONS = (ALLOW, DENY, ALWAYS)
"""The answers to a permission. `always` also allows what is alike, for this job and its continuations."""

PERSON, RULE, DEADLINE = "person", "rule", "deadline"

TEXT_LIMIT = 256 * 1024
"""Bytes of what is asked. An agent that wants to show more writes a file and names it."""

CHOICES_LIMIT = 20
OPEN_LIMIT = 8
"""Open questions of one job."""

SHOWN = 120
"""Characters of a question in a list."""

KEPT = 20
"""Closed questions that the record keeps; the journal and the audit log have every one."""

ALWAYS_KEPT = 50
"""The same for those that were answered with `always`, which still decide."""


class Question(Frozen):
    """One question of a job, as the record stores it."""

    number: int
    """Counts the questions of the job from 1; `JOB.NUMBER` is the id of the question."""
    attempt: int
    kind: str
    text: str
    """What the agent asks; for a permission, what a person reads before the input of the tool."""
    tool: str | None = None
    input: Json | None = None
    """For a permission: the exact input of the tool."""
    digest: str
    """SHA-256 of what is asked. An answer carries the digest of what was shown."""
    choices: list[str] = []  # noqa: RUF012 - nothing in mam writes into a record's lists
    default: str = DENY
    """The answer when the deadline passes."""
    deadline: Json | None = None
    """A lease: the deadline follows the same clocks as a claim."""
    asked_at: str
    state: str = OPEN
    answer: str | None = None
    reason: str | None = None
    answered_at: str | None = None
    answered_by: str | None = None
    decided: str | None = None
    """Who decided: a person, a rule or the deadline."""

    @property
    def is_open(self) -> bool:
        return self.state == OPEN

    @property
    def ends(self) -> Lease | None:
        return None if self.deadline is None or self.state != OPEN else Lease(**self.deadline)


class Draft(Frozen):
    """What an asker asks, before the job numbers it."""

    kind: str
    text: str
    tool: str | None = None
    input: Json | None = None
    choices: tuple[str, ...] = ()
    default: str = DENY
    deadline_seconds: float | None = None


def check_draft(draft: Draft) -> Draft:
    """Refuses what a person could not be shown or could not answer."""
    if draft.kind not in KINDS:
        raise BadInput(why=f"{draft.kind[:40]!r} is not a kind of question: {', '.join(KINDS)}")
    if not draft.text.strip():
        raise BadInput(why="the question is empty")
    if len(_asked(draft).encode(errors="surrogatepass")) > TEXT_LIMIT:
        raise BadInput(why=f"the question has more than {TEXT_LIMIT // 1024} KiB; write a file and name it")
    try:
        _asked(draft).encode()
    except UnicodeEncodeError:
        raise BadInput(why="the question is not text that UTF-8 can hold") from None
    if len(draft.choices) > CHOICES_LIMIT or len(set(draft.choices)) != len(draft.choices):
        raise BadInput(why=f"a question has at most {CHOICES_LIMIT} choices, all different")
    if not all(choice.strip() for choice in draft.choices):
        raise BadInput(why="a choice is empty")
    if draft.kind != PERMISSION and draft.default != DENY and draft.choices and draft.default not in draft.choices:
        raise BadInput(why=f"the default {draft.default[:80]!r} is none of the choices")
    if draft.kind == PERMISSION and draft.default not in (ALLOW, DENY):
        raise BadInput(why="the default of a permission is allow or deny")
    return draft


def draft_from_fields(fields: object) -> Draft:
    """A draft from outside, as JSON."""
    if not isinstance(fields, dict) or not {"kind", "text"} <= fields.keys() or not fields.keys() <= _DRAFT.keys():
        raise BadInput(why=f"a question has a kind and a text, and may have {', '.join(sorted(_DRAFT))}")
    for name, value in fields.items():
        if not isinstance(value, _DRAFT[name]) or isinstance(value, bool):
            raise BadInput(why=f"the {name} of a question has another type")
    choices = fields.get("choices", ())
    if not all(isinstance(choice, str) for choice in choices):
        raise BadInput(why="the choices of a question are texts")
    if fields.get("deadline_seconds") is not None:
        check_seconds("deadline", fields["deadline_seconds"])
    return check_draft(Draft(**{**fields, "choices": tuple(choices)}))


def digest_of(draft: Draft) -> str:
    from hashlib import sha256

    return sha256(_asked(draft).encode()).hexdigest()


def _asked(draft: Draft) -> str:
    import json

    shown = [draft.kind, draft.text, draft.tool, draft.input, list(draft.choices)]
    return json.dumps(shown, sort_keys=True, ensure_ascii=False)


def check_answer(question: Question, answer: str) -> str:
    """The answer as the question stores it, or BadInput."""
    if question.kind == PERMISSION:
        if answer not in DECISIONS:
            raise BadInput(why=f"a permission is answered with {', '.join(DECISIONS)}, not {answer[:40]!r}")
        return answer
    if answer == DENY:
        return answer
    if not answer.strip():
        raise BadInput(why="the answer is empty")
    if len(answer.encode(errors="surrogatepass")) > TEXT_LIMIT:
        raise BadInput(why=f"the answer has more than {TEXT_LIMIT // 1024} KiB")
    if question.choices and answer not in question.choices:
        raise BadInput(why=f"{answer[:80]!r} is none of the choices: {', '.join(question.choices)}")
    return answer


def questions_of(job: Job) -> list[Question]:
    return [Question.from_fields({**Question.all_fields, **fields}) for fields in job.questions]


def open_questions(job: Job) -> list[Question]:
    return [question for question in questions_of(job) if question.is_open] if job.questions else []


def count_open(job: Job) -> int:
    return sum(fields.get("state", OPEN) == OPEN for fields in job.questions)


def find_question(job: Job, number: int) -> Question | None:
    return next((question for question in questions_of(job) if question.number == number), None)


def question_id(job_id: str, number: int) -> str:
    return f"{job_id}.{number}"


def first_line(text: str) -> str:
    """For a list or a sentence; a person answers only after the whole text."""
    line = text.strip().partition("\n")[0].rstrip(".")
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"


def earliest_deadline(job: Job) -> Lease | None:
    ends = [end for question in open_questions(job) if (end := question.ends) is not None]
    return min(ends, key=lambda end: (end.boot_id, end.boot_ms, end.wall_ms)) if ends else None


def with_question(job: Job, question: Question) -> list[Json]:
    """The questions of the job after one was asked or has changed: all that are open, and the latest others."""
    others = [known for known in questions_of(job) if known.number != question.number]
    known = sorted([*others, question], key=lambda one: one.number)
    closed = [one.number for one in known if not one.is_open and one.answer != ALWAYS]
    always = [one.number for one in known if one.answer == ALWAYS]
    dropped = {*closed[: max(0, len(closed) - KEPT)], *always[: max(0, len(always) - ALWAYS_KEPT)]}
    return [_to_json(one) for one in known if one.number not in dropped]


def withdrawn(job: Job, now: str) -> list[Json]:
    """The questions of the job when its attempt ends."""
    return [
        _to_json(one.replace(state=WITHDRAWN, answered_at=now) if one.is_open else one) for one in questions_of(job)
    ]


def _to_json(question: Question) -> Json:
    """Without the fields that have their default."""
    fields, usual = question.as_dict(), Question.all_fields
    return {name: value for name, value in fields.items() if value != usual[name]}


def check_questions(found: Sequence[Any], file: str) -> None:
    """Refuses a record whose questions mam could not read."""
    for fields in found:
        if not isinstance(fields, dict) or not _is_question(fields):
            raise BadRecord(file=file, problem="questions holds something that is not a question")


_DRAFT: dict[str, tuple[type, ...]] = {
    "kind": (str,), "text": (str,), "tool": (str, type(None)), "input": (dict, type(None)), "choices": (list, tuple),
    "default": (str,), "deadline_seconds": (int, float, type(None)),
}  # fmt: skip
_TYPES: dict[str, tuple[type, ...]] = {
    "number": (int,), "attempt": (int,), "kind": (str,), "text": (str,), "digest": (str,), "asked_at": (str,),
    "state": (str,), "default": (str,), "choices": (list,), "tool": (str, type(None)), "input": (dict, type(None)),
    "deadline": (dict, type(None)), "answer": (str, type(None)), "reason": (str, type(None)),
    "answered_at": (str, type(None)), "answered_by": (str, type(None)), "decided": (str, type(None)),
}  # fmt: skip


def _is_question(fields: Json) -> bool:
    if not Question.required_fields <= fields.keys() or not fields.keys() <= _TYPES.keys():
        return False
    if not all(isinstance(value, _TYPES[name]) and not isinstance(value, bool) for name, value in fields.items()):
        return False
    if fields.get("state", OPEN) not in STATES or fields["kind"] not in KINDS:
        return False
    return fields.get("deadline") is None or _is_deadline(fields["deadline"])


def _is_deadline(fields: Json) -> bool:
    if not fields.keys() <= set(Lease.field_names) or not isinstance(fields.get("expires_at"), str):
        return False
    try:
        return parse_time(fields["expires_at"]) > 0 and isinstance(fields.get("boot_ms", 0), int)
    except ValueError:
        return False
