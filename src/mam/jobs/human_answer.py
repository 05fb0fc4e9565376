"""A job for a person is answered like a question: an answer to an unclaimed one claims it, checks it and ends it."""

from __future__ import annotations

from mam.errors import AnswerTooLate, Refused
from mam.jobs import acts
from mam.jobs.change import Change
from mam.jobs.draft import HUMAN
from mam.jobs.question import DENY
from mam.jobs.status import PENDING, RUNNING
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.util.clock import Moment


class HumanAnswer(Frozen):
    """The answer to a job for a person, fenced by what the person saw of it."""

    answer: str
    """The result; `deny` ends the job in error."""
    by: str
    seen: Job
    reason: str | None = None


def is_for_person(job: Job) -> bool:
    """Whether a person can answer the job now."""
    return job.agent == HUMAN and job.status in (PENDING, RUNNING)


def answer(job: Job, moment: Moment, *, given: HumanAnswer, new_claim: str, artifacts_unchecked: bool = True) -> Change:
    """One act with the lines of the claim and of the end. With `artifacts_unchecked` the expected artifacts have not
    been checked yet."""
    _check_seen(job, given)
    claimed = Change(job=job)
    if job.status is PENDING:
        claimed = acts.claim(
            job, moment, owner=given.by, lease_seconds=None, by="answer", claim_id=new_claim, unfenced=False
        )
    held = claimed.job
    if given.answer == DENY:
        reason = f"denied by {given.by}{f': {given.reason}' if given.reason else ''}"
        ended = acts.fail(held, moment, attempt=held.attempt, claim_id=held.claim_id, reason=reason)
    else:
        ended = acts.complete(
            held, moment, attempt=held.attempt, claim_id=held.claim_id, result=given.answer,
            artifacts_unchecked=artifacts_unchecked,
        )  # fmt: skip
    return claimed.then(ended.job, *ended.lines)


def _check_seen(job: Job, given: HumanAnswer) -> None:
    seen = given.seen
    if job.agent != HUMAN:
        raise Refused(why=f"Job {job.job_id} is not for a person and asks nothing.")
    if job.status.ended:
        raise AnswerTooLate(question=job.job_id, why=f"is {job.status}")
    if not is_for_person(job):
        raise Refused(why=f"Job {job.job_id} is {job.status}; `mam explain {job.job_id[:8]}` states what it waits for.")
    if (job.attempt, job.prompt, job.expected_artifacts) != (seen.attempt, seen.prompt, seen.expected_artifacts):
        raise AnswerTooLate(question=job.job_id, why="is not the job that was shown")
