"""What a viewer may read. For a job that it may not see, the answer is the same as for an unknown id."""

from __future__ import annotations

from mam.access.grant import ANSWER, READ, SUBMIT
from mam.errors import NotAllowed, UnknownJob
from mam.jobs.input_rules import is_job_id
from mam.jobs.record import Job
from mam.registry.listing import candidate_jobs
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from mam.access.viewer import Viewer
    from mam.jobs.activity import State
    from mam.jobs.change import AuditRecord
    from mam.jobs.overview import Overview
    from mam.jobs.pause import Pause
    from mam.jobs.workers import Holder
    from mam.questions import Asked
    from mam.registry import Registry
    from mam.registry.listing import JobFilter

PAGE_LIMIT = 500
SCAN_LIMIT = 5000
"""Jobs that one page looks at. A rare word in a large store takes several pages, not one long request."""


class Page(Frozen):
    """Part of a list, newest first."""

    jobs: tuple[Job, ...]
    below: int | None
    """The `Query.below` of the next page; None at the end. A page with few jobs, or none, is not always the last."""


class AuthorizedReading:
    """Verbs that only read, for one viewer."""

    def __init__(self, registry: Registry, viewer: Viewer, defaults: Mapping[str, Any] | None = None) -> None:
        self.registry = registry
        """The whole service, without rights. Doors do not call it; they use the methods of this class."""
        self.viewer = viewer
        self.defaults: Mapping[str, Any] = {} if defaults is None else defaults
        """Parameters of `draft_job` that the settings of this host give to each new job."""

    def may_see(self, job: Job) -> bool:
        return self.viewer.may(READ) or self.is_own(job)

    def is_own(self, job: Job) -> bool:
        """Whether the viewer may change the job as the one who registered it."""
        if self.viewer.grant.is_admin:
            return True
        return self.viewer.may(SUBMIT) and job.registered_by is not None and job.registered_by == self.viewer.token

    def get(self, job: str) -> Job:
        """The job of this id, or of this prefix if the viewer may read the whole store."""
        if self.viewer.may(READ):
            return self.registry.get(job)
        found = self.registry.get_exact(job) if is_job_id(job) else None
        if found is None or not self.may_see(found):
            raise UnknownJob(job=job[:80], store=self.registry.store.address)
        return found

    @property
    def lists_jobs(self) -> bool:
        return self.viewer.may(READ) or self.viewer.may(SUBMIT)

    def may_see_id(self, job_id: str) -> bool:
        """For the entries of the journal."""
        if self.viewer.may(READ):
            return True
        try:
            return self.may_see(self.registry.get_exact(job_id))
        except UnknownJob:
            return False

    def page(self, wanted: JobFilter, limit: int) -> Page:
        """At most `limit` jobs that match and that the viewer may see."""
        self._need_jobs("list jobs")
        found, last = list[Job](), None
        for looked, job in enumerate(candidate_jobs(self.registry, wanted)):
            if len(found) == min(limit, PAGE_LIMIT) or looked == SCAN_LIMIT:
                return Page(jobs=tuple(found), below=last)
            last = job.number
            if wanted.matches(job) and self.may_see(job):
                found.append(job)
        return Page(jobs=tuple(found), below=None)

    def select(self, wanted: JobFilter) -> Iterator[Job]:
        """All jobs that match and that the viewer may see, newest first."""
        self._need_jobs("list jobs")
        return (job for job in candidate_jobs(self.registry, wanted) if wanted.matches(job) and self.may_see(job))

    def overview(self, job: str) -> Overview:
        return self.registry.overview(self.get(job).job_id, self.may_see_id)

    def explain(self, job: str) -> tuple[Job, list[str]]:
        return self.registry.explain(self.get(job).job_id, self.may_see_id)

    def state(self, job: Job) -> State:
        return self.registry.state(job)

    def events(self, job: str) -> list[AuditRecord]:
        return self.registry.events(self.get(job).job_id)

    def history(self, job: str) -> list[AuditRecord]:
        return self.registry.history(self.get(job).job_id)

    def counts(self) -> dict[str, int]:
        self.viewer.need(READ, "count jobs")
        return self.registry.counts()

    def holders(self) -> list[Holder]:
        self.viewer.need(READ, "list workers")
        return self.registry.holders()

    def pauses(self) -> list[Pause]:
        self.viewer.need(READ, "list pauses")
        return self.registry.store.pauses()

    def questions(self) -> list[Asked]:
        """The open questions that the viewer may see: all of them with `read` or `answer`, otherwise its own jobs'."""
        from mam import questions

        if not (self.viewer.may(READ) or self.viewer.may(ANSWER)):
            self.viewer.need(SUBMIT, "list questions")
        found = questions.open_now(self.registry)
        return [asked for asked in found if self.viewer.may(ANSWER) or self.may_see(asked.job)]

    def question(self, name: str) -> Asked:
        """The question JOB.NUMBER."""
        from mam import questions

        if self.viewer.may(READ):
            return questions.find(self.registry, name)
        unknown = UnknownJob(job=name[:80], store=self.registry.store.address)
        job_id = name.rpartition(".")[0]
        try:
            job = self.registry.get_exact(job_id) if is_job_id(job_id) else None
        except UnknownJob:
            raise unknown from None
        if job is None or not (self.viewer.may(ANSWER) or self.may_see(job)):
            raise unknown
        return questions.find(self.registry, name)

    def _need_jobs(self, what: str) -> None:
        if not self.lists_jobs:
            raise NotAllowed(who=self.viewer.label, what=what, why=": it needs the scope read")
