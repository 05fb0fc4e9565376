"""The registry with the rights of one viewer: what the API, the page and the tools for agents call."""

from __future__ import annotations

from mam.access.grant import ADMIN, ANSWER, WORK
from mam.access.jobs import AuthorizedJobs
from mam.errors import Refused
from mam.jobs import input_rules
from mam.stores.port import ClaimRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mam.agents.port import Directory
    from mam.jobs.pause import Pause
    from mam.jobs.question import Draft
    from mam.jobs.record import Job
    from mam.jobs.workers import WorkerEntry
    from mam.questions import Asked
    from mam.work.git.apply import Applied


class AuthorizedRegistry(AuthorizedJobs):
    """Every verb that a door offers. A report on a claim names its attempt and claim id: who knows both, holds it."""

    def claim_request(
        self, label: str, *, owner: str | None = None, host: str = "", lease_seconds: float | None = None
    ) -> ClaimRequest:
        """A request for the next job of a label. `host` names where the job will run."""
        self.viewer.need(WORK, "claim jobs")
        self._check_label(input_rules.check_name("label", label))
        if host:
            input_rules.check_name("host", host)
        if lease_seconds is not None:
            input_rules.check_seconds("lease", lease_seconds)
        return ClaimRequest(
            label=label,
            owner=input_rules.check_name("owner", self.viewer.name if owner is None else owner),
            host=host,
            lease_seconds=lease_seconds,
        )

    def claim(self, request: ClaimRequest) -> Job | None:
        self.viewer.need(WORK, "claim jobs")
        return self.registry.claim(request)

    def heartbeat(self, job: str, *, attempt: int, claim_id: str, lease_seconds: float | None = None) -> Job:
        return self.registry.heartbeat(
            self._reported(job), attempt=attempt, claim_id=claim_id, lease_seconds=lease_seconds
        )

    def complete(self, job: str, *, attempt: int, claim_id: str, result: str | None = None) -> Job:
        return self.registry.complete(self._reported(job), attempt=attempt, claim_id=claim_id, result=result)

    def fail(self, job: str, *, attempt: int, claim_id: str, reason: str, retryable: bool = False) -> Job:
        return self.registry.fail(
            self._reported(job), attempt=attempt, claim_id=claim_id, reason=reason, retryable=retryable
        )

    def release(self, job: str, *, attempt: int, claim_id: str) -> Job:
        return self.registry.release(self._reported(job), attempt=attempt, claim_id=claim_id)

    def publish(
        self, job: str, *, attempt: int, claim_id: str, event: str, detail: str = "",
        data: Mapping[str, Any] | None = None,
    ) -> Job:  # fmt: skip
        return self.registry.publish(
            self._reported(job), attempt=attempt, claim_id=claim_id, event=event, detail=detail, data=data
        )

    def ask(self, job: str, draft: Draft, *, attempt: int, claim_id: str) -> Asked:
        from mam import questions

        return questions.ask(self.registry, self._reported(job), draft, attempt=attempt, claim_id=claim_id)

    def _reported(self, job: str) -> str:
        """A whole id: the caller got it with the claim."""
        self.viewer.need(WORK, "report on jobs")
        return input_rules.check_job_id(job)

    # -- people ------------------------------------------------------------------------------------------------------

    def answer(self, name: str, answer: str, *, digest: str | None = None, reason: str | None = None) -> Asked:
        """Answers the question JOB.NUMBER; with `digest` only if it is still the one that was shown."""
        from mam import questions
        from mam.jobs.question_acts import Answer

        self.viewer.need(ANSWER, "answer questions")
        asked = self.question(name)
        self._check_label(asked.job.agent_session)
        if reason is not None:
            input_rules.check_text("reason", reason, input_rules.REASON_LIMIT)
        given = Answer(
            number=asked.question.number, attempt=asked.question.attempt,
            digest=asked.question.digest if digest is None else digest, answer=answer, by=self.viewer.name,
            reason=reason,
        )  # fmt: skip
        return questions.answer(self.registry, asked.job.job_id, given)

    def apply(self, job: str) -> Applied:
        """Applies the changes of a job to the checkout in which it was registered, on this host. It writes into a
        directory of the server's user, so it needs every right."""
        from mam.work.git.applying import apply_job

        found = self.get(job)
        self.viewer.need(ADMIN, "apply changes")
        return apply_job(self.registry, found, (found.workdir,), by=self.viewer.name, staged=False)

    def stop_session(self, directory: Directory, agent_id: str, generation: str) -> None:
        """Stops a live session of this host, if it is still this generation of it."""
        from mam.agents.lookup import by_id, require_live
        from mam.agents.stop import stop_session

        self.viewer.need(ADMIN, "stop sessions")
        answer = by_id(directory, agent_id)
        record = answer.record if answer.record is not None else require_live(answer, agent_id)
        if record.generation_id != generation:
            raise Refused(why=f"The session {record.agent_name} was started again meanwhile; look at it again.")
        stop_session(directory, record, "operator_stop")

    def pause(self, pause: Pause) -> None:
        self.viewer.need(ADMIN, "pause claims")
        self.registry.pause(pause)

    def resume(self, agent: str | None, label: str | None) -> bool:
        self.viewer.need(ADMIN, "end a pause")
        return self.registry.resume(agent, label)

    def ask_worker(self, name: str, what: str) -> WorkerEntry:
        self.viewer.need(ADMIN, "stop workers")
        return self.registry.ask_worker(name, what)
