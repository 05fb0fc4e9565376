"""The questions of a registry: ask, find, answer and wait, for every door that a person or an agent uses."""

from __future__ import annotations

import time
from functools import partial
from math import inf

from mam.errors import Refused, TimedOut, UnknownJob
from mam.jobs import human_answer, question_acts
from mam.jobs.draft import HUMAN
from mam.jobs.human_answer import is_for_person
from mam.jobs.question import (
    Draft,
    Question,
    check_draft,
    find_question,
    open_questions,
    question_id,
    questions_of,
)
from mam.jobs.status import RUNNING
from mam.registry import LONGEST_SLEEP_SECONDS
from mam.stores.port import Query
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.acts import Fence
    from mam.jobs.human_answer import HumanAnswer
    from mam.jobs.question_acts import Answer
    from mam.jobs.record import Job, Json
    from mam.registry import Registry


class Asked(Frozen):
    """A question and the job that asks it."""

    job: Job
    question: Question

    @property
    def id(self) -> str:
        return question_id(self.job.job_id, self.question.number)

    def to_json(self) -> Json:
        """The question with its id, and the job that asks."""
        job = self.job
        return {
            "id": self.id, "job_id": job.job_id, "agent": job.agent, "agent_session": job.agent_session,
            "owner": job.owner, **self.question.as_dict(),
        }  # fmt: skip


def ask(registry: Registry, job: str, draft: Draft, *, attempt: int, claim_id: str | None = None) -> Asked:
    """Stores a question of the job that this claim holds."""
    act = partial(question_acts.ask, attempt=attempt, claim_id=claim_id, draft=check_draft(draft))
    asking = registry.act(registry.get(job).job_id, "ask", act)
    return Asked(job=asking, question=questions_of(asking)[-1])


def answer(registry: Registry, job_id: str, given: Answer) -> Asked:
    """Stores the first answer; AnswerTooLate for any later one."""
    after = registry.act(job_id, "answer", partial(question_acts.answer, given=given))
    question = find_question(after, given.number)
    if question is None:
        raise UnknownJob(job=question_id(job_id, given.number), store=registry.store.address)
    return Asked(job=after, question=question)


def answer_human(registry: Registry, given: HumanAnswer) -> Job:
    """Claims, checks and ends a job for a person in one act; on one that is claimed, the last two."""
    act = partial(human_answer.answer, given=given, new_claim=registry.store.clock.new_id())
    return registry.act(given.seen.job_id, "answer", act)


def for_people(registry: Registry) -> list[Job]:
    """The jobs that a person has to do, oldest first."""
    queued = [registry.get_exact(one.job_id) for one in registry.store.queue(None, None) if one.agent == HUMAN]
    running = registry.select(Query(statuses=frozenset({RUNNING})))
    return sorted((job for job in (*queued, *running) if is_for_person(job)), key=lambda job: job.number)


def open_now(registry: Registry) -> list[Asked]:
    """The open questions of all jobs, oldest first. Deadlines that have passed are applied first."""
    registry.sweep_if_due()
    found = [Asked(job=job, question=one) for job in registry.select(Query(asking=True)) for one in open_questions(job)]
    return sorted(found, key=lambda asked: (asked.question.asked_at, asked.job.number, asked.question.number))


def find(registry: Registry, text: str) -> Asked:
    """The question that `text` names: JOB.NUMBER, or a job with one open question. A prefix of the job is enough."""
    prefix, dot, number = text.rpartition(".")
    if not dot:
        return _only_open(registry.get(text))
    job = registry.get(prefix)
    question = find_question(job, int(number)) if number.isascii() and number.isdigit() and len(number) < 10 else None
    if question is None:
        raise Refused(why=f"Job {job.job_id} has no question {number[:20]!r}; `mam questions` lists the open ones.")
    return Asked(job=job, question=question)


def _only_open(job: Job) -> Asked:
    found = open_questions(job)
    if len(found) == 1:
        return Asked(job=job, question=found[0])
    if not found:
        raise Refused(why=f"Job {job.job_id} has no open question.")
    several = ", ".join(question_id(job.job_id[:8], one.number) for one in found)
    raise Refused(why=f"Job {job.job_id} has several open questions; name one of {several}.")


def wait_for_answer(
    registry: Registry, asked: Asked, timeout: float | None = None, fence: Fence | None = None
) -> Question:
    """Sleeps until the question is closed: answered, expired or withdrawn. TimedOut after `timeout` seconds. With the
    fence of the claim, it renews the lease meanwhile: a person may take longer than that."""
    ends = None if timeout is None else time.monotonic() + timeout
    while True:
        offset = registry.store.end_offset()
        registry.sweep_if_due()
        job = registry.get_exact(asked.job.job_id)
        question = find_question(job, asked.question.number)
        if question is None or not question.is_open:
            return question or asked.question.replace(state="withdrawn")
        left = LONGEST_SLEEP_SECONDS if ends is None else ends - time.monotonic()
        if left <= 0:
            raise TimedOut(what=f"question {asked.id} is not answered", seconds=f"{timeout:g}")
        if fence is not None:
            left = min(left, _renew(registry, job, fence))
        registry.wait_for_change(offset, left)


def _renew(registry: Registry, job: Job, fence: Fence) -> float:
    """Renews the lease once half of it is over, and returns the seconds until that. A worker renews earlier."""

    def half_left(job: Job) -> float:
        lease = job.lease
        return inf if lease is None else lease.left_ms(registry.store.clock.now()) / 1000 - lease.seconds / 2

    left = half_left(job)
    return left if left > 0 else max(0.0, half_left(registry.heartbeat(job.job_id, **fence)))
