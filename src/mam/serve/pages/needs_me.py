"""What needs a person: open questions, failures that no one has looked at, and jobs for people."""

from __future__ import annotations

from mam.access.grant import READ
from mam.errors import NotAllowed
from mam.jobs.status import ERROR, PENDING, RUNNING, WAITING
from mam.serve.pages.actions import Action, actions_of
from mam.serve.pages.asking import QuestionRow, question_row
from mam.serve.pages.conversations import last_sentence
from mam.serve.pages.rows import JobRow, job_row
from mam.serve.pages.waiting import FAILURES_SHOWN, jobs_for_people, unseen_failures
from mam.serve.pages.when_idle import reason_of
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.access.registry import AuthorizedRegistry
    from mam.jobs.record import Job

QUESTIONS_SHOWN = 50


class OwnJob(Frozen):
    """A failure, or a job for a person."""

    row: JobRow
    said: str
    actions: dict[str, Action]


class NeedsMe(Frozen):
    questions: tuple[QuestionRow, ...]
    failures: tuple[OwnJob, ...]
    mine: tuple[OwnJob, ...]
    counts: dict[str, int]
    more_questions: int = 0
    more_failures: bool = False
    is_first: bool = False
    """Whether the store has no job yet: the page then says what to do first."""

    @property
    def count(self) -> int:
        return len(self.questions) + self.more_questions + len(self.failures) + len(self.mine)

    @property
    def heading(self) -> str:
        """`2 questions, 1 failure`."""
        asked, failed, mine = len(self.questions) + self.more_questions, len(self.failures), len(self.mine)
        more = "+" if self.more_failures else ""
        parts = [
            f"{asked} question{'s' * (asked != 1)}" if asked else "",
            f"{failed}{more} failure{'s' * (failed != 1)}" if failed else "",
            f"{mine} job{'s' * (mine != 1)} for a person" if mine else "",
        ]
        return ", ".join(part for part in parts if part) or "Nothing needs you"


def needs_me(registry: AuthorizedRegistry) -> NeedsMe:
    now = registry.registry.store.clock.now()
    asked = registry.questions()
    questions = tuple(
        question_row(one, now.wall_ms, last_sentence(registry, one.job)) for one in asked[:QUESTIONS_SHOWN]
    )
    failed, people = _failures_and_people(registry)
    counts = _counts(registry)
    return NeedsMe(
        questions=questions, more_questions=max(0, len(asked) - QUESTIONS_SHOWN),
        failures=tuple(_own(registry, job) for job in failed[:FAILURES_SHOWN]),
        more_failures=len(failed) > FAILURES_SHOWN,
        mine=tuple(_own(registry, job) for job in people),
        counts=counts, is_first=registry.viewer.may(READ) and not any(counts.values()),
    )  # fmt: skip


def _failures_and_people(registry: AuthorizedRegistry) -> tuple[list[Job], list[Job]]:
    """Nothing for a viewer that may only answer questions."""
    try:
        return unseen_failures(registry), jobs_for_people(registry)
    except NotAllowed:
        return [], []


def _counts(registry: AuthorizedRegistry) -> dict[str, int]:
    """Empty for a viewer that may not count all jobs."""
    try:
        return registry.counts()
    except NotAllowed:
        return {}


def _own(registry: AuthorizedRegistry, job: Job) -> OwnJob:
    now_ms = registry.registry.store.clock.now().wall_ms
    state = registry.state(job) if job.status is RUNNING else None
    reason = reason_of(registry, job) if job.status in (PENDING, WAITING) else ""
    said = last_sentence(registry, job) if job.status is ERROR else ""
    row = job_row(job, state, reason, now_ms)
    return OwnJob(row=row, said="" if said in row.now else said, actions=actions_of(job, registry.viewer))
