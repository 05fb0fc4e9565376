"""The acts of questions: an agent asks under its claim, and a person, a rule or a deadline answers."""

from __future__ import annotations

from mam.errors import AnswerTooLate, Refused
from mam.jobs.acts import check_fence
from mam.jobs.change import Change, audit_record, published, touched, unchanged
from mam.jobs.lease import new_lease
from mam.jobs.question import (
    ANSWERED,
    DEADLINE,
    EXPIRED,
    OPEN_LIMIT,
    PERMISSION,
    PERSON,
    WITHDRAWN,
    Draft,
    Question,
    check_answer,
    check_draft,
    digest_of,
    find_question,
    open_questions,
    question_id,
    questions_of,
    with_question,
)
from mam.jobs.status import RUNNING
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.util.clock import Moment


class Answer(Frozen):
    """An answer, fenced by the attempt and the digest of what the answerer saw."""

    number: int
    attempt: int
    digest: str
    answer: str
    by: str
    """user@host, or the name of a token."""
    reason: str | None = None
    decided: str = PERSON


def ask(job: Job, moment: Moment, *, attempt: int, draft: Draft, claim_id: str | None = None) -> Change:
    """The holder of the claim asks. Subscribers get `permission_required`, without what is asked."""
    check_draft(draft)
    check_fence(job, attempt, claim_id)
    if not job.may_ask:
        raise Refused(why=f"Job {job.job_id} was registered with --no-ask; it cannot ask a person.")
    if len(open_questions(job)) >= OPEN_LIMIT:
        raise Refused(why=f"Job {job.job_id} has {OPEN_LIMIT} open questions; answer one first.")
    question = _numbered(job, draft, attempt, moment)
    asked = job.replace(questions=with_question(job, question))
    line = audit_record(
        "asked", moment, job, question=question.number, attempt=attempt, kind=draft.kind, tool=draft.tool,
        digest=question.digest,
    )  # fmt: skip
    change = Change(job=asked, lines=(line,))
    data = {"question": question_id(job.job_id, question.number), "kind": draft.kind}
    return published(change, "permission_required", f"{draft.kind} asked", moment, data)


def decide(
    job: Job, moment: Moment, *, attempt: int, draft: Draft, answer: str, rule: str, what: str = "",
    claim_id: str | None = None,
) -> Change:  # fmt: skip
    """A rule has decided about a permission, so no question is stored; the audit log says which rule and about what."""
    check_fence(job, attempt, claim_id)
    line = audit_record(
        "decided", moment, job, attempt=attempt, kind=draft.kind, tool=draft.tool, answer=answer, rule=rule,
        what=what or None, digest=digest_of(draft),
    )  # fmt: skip
    return Change(job=touched(job, moment, {}), lines=(line,))


def _numbered(job: Job, draft: Draft, attempt: int, moment: Moment) -> Question:
    numbers = [known.number for known in questions_of(job)]
    deadline = None if draft.deadline_seconds is None else new_lease(draft.deadline_seconds, moment).as_dict()
    return Question(
        number=max(numbers, default=0) + 1, attempt=attempt, kind=draft.kind, text=draft.text, tool=draft.tool,
        input=draft.input, digest=digest_of(draft), choices=list(draft.choices), default=draft.default,
        deadline=deadline, asked_at=moment.second,
    )  # fmt: skip


def answer(job: Job, moment: Moment, *, given: Answer) -> Change:
    """The first answer wins. One that is late, or meant for another attempt or another text, changes nothing."""
    question = find_question(job, given.number)
    if question is None:
        raise Refused(why=f"Job {job.job_id} has no question {given.number}; `mam questions` lists the open ones.")
    if not question.is_open or job.status is not RUNNING or question.attempt != given.attempt:
        raise _too_late(job, question, given)
    if question.digest != given.digest:
        raise AnswerTooLate(question=question_id(job.job_id, given.number), why="is not the question that was shown")
    left = None if question.ends is None else question.ends.left_ms(moment)
    if left is not None and left <= 0:
        raise AnswerTooLate(question=question_id(job.job_id, given.number), why="had a deadline, which has passed")
    text = check_answer(question, given.answer)
    return _decided(job, moment, question, ANSWERED, text, given.by, given.decided, given.reason)


def withdraw(job: Job, moment: Moment, *, attempt: int, number: int, claim_id: str | None = None) -> Change:
    """The asker no longer waits, so that no one needs to answer. A question that is closed stays as it is."""
    check_fence(job, attempt, claim_id)
    question = find_question(job, number)
    if question is None or question.attempt != attempt:
        raise Refused(why=f"Job {job.job_id} has no question {number} under attempt {attempt}.")
    if not question.is_open:
        return unchanged(job)
    closed = question.replace(state=WITHDRAWN, answered_at=moment.second)
    line = audit_record("withdrawn", moment, job, question=number, attempt=attempt)
    return Change(job=touched(job, moment, {"questions": with_question(job, closed)}), lines=(line,))


def _too_late(job: Job, question: Question, given: Answer) -> AnswerTooLate:
    if question.attempt != given.attempt:
        why = f"belongs to attempt {question.attempt}, the answer to attempt {given.attempt}"
    elif question.answer is not None:
        who = f" by {question.answered_by}" if question.answered_by else ""
        why = f"was answered{who} at {question.answered_at}: {question.answer[:80]}"
    else:
        why = f"was withdrawn, because attempt {question.attempt} has ended"
    return AnswerTooLate(question=question_id(job.job_id, question.number), why=why)


def expire(job: Job, moment: Moment) -> Change:
    """Applies the deadlines that have passed; the job stays unchanged if there is none."""
    change = unchanged(job)
    for question in open_questions(job):
        if question.ends is not None and question.ends.left_ms(moment) <= 0:
            step = _decided(change.job, moment, question, EXPIRED, question.default, None, DEADLINE, None)
            change = change.then(step.job, *step.lines)
    return change


def _decided(
    job: Job, moment: Moment, question: Question, state: str, text: str, by: str | None, decided: str,
    reason: str | None,
) -> Change:  # fmt: skip
    closed = question.replace(
        state=state, answer=text, reason=reason, answered_at=moment.second, answered_by=by, decided=decided
    )
    line = audit_record(
        "answered", moment, job, question=question.number, attempt=question.attempt, by=by, decided=decided,
        answer=text if question.kind == PERMISSION else None, reason=reason,
        after_seconds=_seconds_between(question.asked_at, moment),
    )  # fmt: skip
    return Change(job=touched(job, moment, {"questions": with_question(job, closed)}), lines=(line,))


def _seconds_between(asked_at: str, moment: Moment) -> int:
    from mam.util.clock import parse_time

    return max(0, (moment.wall_ms - parse_time(asked_at)) // 1000)
