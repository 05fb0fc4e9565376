"""The backend of the holder of a token: what the scopes and bounds of the token allow, over HTTP."""

from __future__ import annotations

import os

from mam.access.grant import ANSWER, SUBMIT, WORK
from mam.errors import Refused
from mam.mcp.caller import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from mam.access.registry import AuthorizedRegistry
    from mam.access.viewer import Viewer
    from mam.config.settings import Config
    from mam.jobs.acts import Fence
    from mam.jobs.question import Draft, Question
    from mam.jobs.record import Job
    from mam.mcp.backend import Changes
    from mam.mcp.messages import Json
    from mam.questions import Asked
    from mam.registry.listing import JobFilter
    from mam.stores.port import Registration

_PASSED = ("label", "model", "after", "exclusive", "artifacts", "key", "repo", "workdir")
_FOR_CONTINUATIONS = ("model", "artifacts", "key")
HANDLE_BYTES = 16


def caller_of(viewer: Viewer) -> Caller:
    """The tools that are offered follow from the scopes of the token."""
    return Caller(
        name=viewer.name, may_write=viewer.may(SUBMIT) or viewer.may(WORK), may_submit=viewer.may(SUBMIT),
        is_worker=viewer.may(WORK), may_answer=viewer.may(ANSWER),
    )  # fmt: skip


class ViewerBackend:
    def __init__(self, rights: AuthorizedRegistry, config: Callable[[], Config]) -> None:
        self._rights = rights
        self._config = config

    # -- reading -----------------------------------------------------------------------------------------------------

    def resolve(self, name: str) -> str:
        return self._rights.get(name).job_id

    def get(self, name: str) -> Job:
        return self._rights.get(name)

    def get_exact(self, job_id: str) -> Job:
        found = self._rights.get(job_id)
        if found.job_id != job_id:
            from mam.errors import UnknownJob

            raise UnknownJob(job=job_id, store="this server")
        return found

    def why(self, job: Job) -> list[str]:
        return self._rights.explain(job.job_id)[1]

    def overview(self, name: str) -> tuple[Job, Json]:
        found = self._rights.overview(name)
        return found.job, found.to_json()

    def select(self, wanted: JobFilter) -> Iterator[Job]:
        return self._rights.select(wanted)

    def needs_look(self, job: Job) -> bool:
        return self._rights.registry.needs_look(job)

    def log(self, job: Job) -> Iterable[bytes]:
        from mam.mcp.job_files import log_of

        return log_of(self._rights.registry, self._rights.get(job.job_id))

    def diff(self, job: Job) -> Iterable[bytes]:
        from mam.mcp.job_files import diff_of

        return diff_of(self._rights.registry, self._rights.get(job.job_id))

    def sweep(self) -> None:
        """The server's follower of the journal does it."""

    def now_ms(self) -> int:
        return self._rights.registry.store.clock.now().wall_ms

    def follower(self) -> Changes:
        raise NotImplementedError("the server follows the journal for all of its callers")

    # -- delegating --------------------------------------------------------------------------------------------------

    def register(self, prompt: str, agent: str, arguments: Json) -> Registration:
        choices = {name: arguments[name] for name in _PASSED if name in arguments}
        may_ask = bool(self._config().questions.get("ask", not os.environ.get("CI")))
        return self._rights.register(prompt=prompt, agent=agent, may_ask=may_ask, **choices)

    def continue_job(self, name: str, prompt: str, arguments: Json) -> Registration:
        choices = {name: arguments[name] for name in _FOR_CONTINUATIONS if name in arguments}
        return self._rights.continue_job(name, prompt=prompt, **choices)

    def cancel(self, name: str, reason: str) -> Job:
        return self._rights.cancel(name, reason=reason)

    # -- working -----------------------------------------------------------------------------------------------------

    def claim(self, label: str, lease_seconds: float | None) -> Job | None:
        request = self._rights.claim_request(label, lease_seconds=lease_seconds)
        return self._rights.claim(request.replace(claim_id=os.urandom(HANDLE_BYTES).hex()))

    def report(self, event: str, job_id: str, fence: Fence, **said: Any) -> Job:
        if event == "progress":
            return self._rights.publish(job_id, event="progress", **said, **fence)  # type: ignore[arg-type]
        do: Callable[..., Job] = getattr(self._rights, event)
        return do(job_id, **said, **fence)

    # -- questions ---------------------------------------------------------------------------------------------------

    def ask(self, _draft: Draft) -> Asked:
        raise Refused(why="No job asks here; a question from here is a job for a person.")

    def question(self, name: str) -> Asked:
        return self._rights.question(name)

    def may_answer(self, job: Job, question: Question) -> bool:
        from mam.mcp.bounds import may_answer

        viewer = self._rights.viewer
        caller = Caller(
            name=viewer.name, may_answer=viewer.may(ANSWER) and viewer.grant.allows_label(job.agent_session)
        )
        return may_answer(caller, question, self._config)

    def answer(self, asked: Asked, text: str, _client: str) -> None:
        self._rights.answer(asked.id, text, digest=asked.question.digest)

    def may_answer_job(self, _job: Job) -> bool:
        return False

    def answer_job(self, _job: Job, _text: str, _client: str) -> None:
        raise Refused(why="Over HTTP, a job for a person is answered with `mam answer`.")
