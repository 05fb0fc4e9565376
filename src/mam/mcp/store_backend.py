"""The backend of the user of this host: everything that the store has, and jobs within the bounds of `mam mcp`.

Inside a job without a worker's door, what is submitted becomes a child of the job, and only its children can be
changed.
"""

from __future__ import annotations

import os

from mam.errors import BadInput, Refused
from mam.mcp.bounds import check_agent, check_workdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from mam.config.settings import Config
    from mam.jobs.acts import Fence
    from mam.jobs.question import Draft, Question
    from mam.jobs.record import Job
    from mam.mcp.backend import Changes
    from mam.mcp.caller import Caller
    from mam.mcp.messages import Json
    from mam.questions import Asked
    from mam.registry import Registry
    from mam.registry.listing import JobFilter
    from mam.stores.port import Registration

HANDLE_BYTES = 16
_PASSED = ("label", "model", "after", "exclusive", "artifacts", "key")


class StoreBackend:
    def __init__(self, caller: Caller, open_registry: Callable[[bool], Registry], config: Callable[[], Config]) -> None:
        self._caller = caller
        self._open = open_registry
        """With True it makes the store if there is none."""
        self._config = config
        self._registry: Registry | None = None

    @property
    def registry(self) -> Registry:
        return self._opened(create=False)

    def _opened(self, *, create: bool) -> Registry:
        if self._registry is None:
            self._registry = self._open(create)
        return self._registry

    # -- reading -----------------------------------------------------------------------------------------------------

    def resolve(self, name: str) -> str:
        return self.registry.resolve(name)

    def get(self, name: str) -> Job:
        return self.registry.get(name)

    def get_exact(self, job_id: str) -> Job:
        self.registry.sweep_if_due()
        return self.registry.get_exact(job_id)

    def why(self, job: Job) -> list[str]:
        return self.registry.explain(job.job_id)[1]

    def overview(self, name: str) -> tuple[Job, Json]:
        found = self.registry.overview(name)
        return found.job, found.to_json()

    def select(self, wanted: JobFilter) -> Iterator[Job]:
        from mam.registry.listing import filtered_jobs

        return filtered_jobs(self.registry, wanted)

    def needs_look(self, job: Job) -> bool:
        return self.registry.needs_look(job)

    def log(self, job: Job) -> Iterable[bytes]:
        from mam.mcp.job_files import log_of

        return log_of(self.registry, job)

    def diff(self, job: Job) -> Iterable[bytes]:
        from mam.mcp.job_files import diff_of

        return diff_of(self.registry, job)

    def sweep(self) -> None:
        self.registry.sweep_if_due()

    def now_ms(self) -> int:
        return self.registry.store.clock.now().wall_ms

    def follower(self) -> Changes:
        from mam.mcp.follower import Follower

        return Follower(self.registry)

    # -- delegating --------------------------------------------------------------------------------------------------

    def register(self, prompt: str, agent: str, arguments: Json) -> Registration:
        check_agent(self._caller, agent)
        choices = {name: arguments[name] for name in _PASSED if name in arguments}
        own = self._own_job()
        if own is not None:
            from mam.mcp.children import Child, register_child

            child = Child(prompt=prompt, agent=agent, asked={**choices, **_child_directory(arguments)})
            return register_child(self.registry, self._config(), own, child)
        choices |= self._place(arguments) | {"origin_host": os.uname().nodename, "may_ask": self._may_ask()}
        return self._opened(create=True).register(prompt=prompt, agent=agent, **choices)

    def _own_job(self) -> str | None:
        """The job inside which this runs. MAM_JOB_ID of a job that has ended may be a leftover in the user's shell."""
        own = self._caller.own_job
        if own is None:
            return None
        from mam.machine.agent_tree import is_inside_agent
        from mam.mcp.children import is_leftover

        return None if not is_inside_agent() and is_leftover(self._opened(create=True), own) else own

    def _place(self, arguments: Json) -> dict[str, Any]:
        """A repository that the worker knows, or a directory within bounds."""
        if "repo" not in arguments:
            return {"workdir": check_workdir(self._caller, arguments.get("workdir", "."))}
        if "workdir" in arguments:
            raise BadInput(why="give repo or workdir, not both")
        name, repos = arguments["repo"], self._config().repos
        if name not in repos:
            known = ", ".join(sorted(repos)) or "none"
            raise BadInput(why=f"the repository {name[:80]!r} is not in [repos] of the user's settings: {known}")
        from mam.access.jobs import DEFAULT_BRANCH

        repository = {"name": name, "branch": DEFAULT_BRANCH, "push": False, "pull_request": False}
        return {"repository": repository, "workspace": "worktree"}

    def _may_ask(self) -> bool:
        return bool(self._config().questions.get("ask", not os.environ.get("CI")))

    def continue_job(self, name: str, prompt: str, arguments: Json) -> Registration:
        from mam.mcp.bounds import check_continues
        from mam.work.conversation_checks import check_can_resume_here

        if self._caller.own_job is not None:
            raise Refused(why="A job cannot continue another conversation: only the user does.")
        old = self.registry.get(name)
        check_continues(self._caller, old)
        check_can_resume_here(old)
        choices = {name: arguments[name] for name in ("model", "artifacts", "key") if name in arguments}
        return self.registry.continue_job(old.job_id, prompt=prompt, **choices)

    def cancel(self, name: str, reason: str) -> Job:
        job_id = self.registry.resolve(name)
        if self._caller.own_job is not None:
            from mam.mcp.children import check_child

            check_child(self.registry, job_id, self._caller.own_job)
        return self.registry.cancel(job_id, reason=reason)

    # -- working -----------------------------------------------------------------------------------------------------

    def claim(self, label: str, lease_seconds: float | None) -> Job | None:
        from mam.jobs.input_rules import check_name
        from mam.stores.port import ClaimRequest

        request = ClaimRequest(
            label=check_name("label", label), owner=f"mcp:{self._caller.name}", host=os.uname().nodename,
            lease_seconds=lease_seconds, claim_id=os.urandom(HANDLE_BYTES).hex(),
        )  # fmt: skip
        return self.registry.claim(request)

    def report(self, event: str, job_id: str, fence: Fence, **said: Any) -> Job:
        if event == "progress":
            return self.registry.publish(job_id, event="progress", **said, **fence)
        do: Callable[..., Job] = getattr(self.registry, event)
        return do(job_id, **said, **fence)

    # -- questions ---------------------------------------------------------------------------------------------------

    def ask(self, draft: Draft) -> Asked:
        from mam.mcp.asking import ask_for_own_job

        return ask_for_own_job(self.registry, self._caller.own_job or "", draft)

    def question(self, name: str) -> Asked:
        from mam import questions

        return questions.find(self.registry, name)

    def may_answer(self, _job: Job, question: Question) -> bool:
        from mam.mcp.bounds import may_answer

        return may_answer(self._caller, question, self._config)

    def answer(self, asked: Asked, text: str, client: str) -> None:
        from mam import questions
        from mam.mcp.asking import answer_to

        questions.answer(self.registry, asked.job.job_id, answer_to(asked, text, self._person(client)))

    def may_answer_job(self, job: Job) -> bool:
        from mam.jobs.human_answer import is_for_person

        return self._caller.may_write and self._caller.may_answer and is_for_person(job)

    def answer_job(self, job: Job, text: str, client: str) -> None:
        from mam import questions
        from mam.jobs.human_answer import HumanAnswer
        from mam.jobs.input_rules import TEXT_LIMIT, check_text

        answer = check_text("answer", text, TEXT_LIMIT)
        questions.answer_human(self.registry, HumanAnswer(answer=answer, by=self._person(client), seen=job))

    def _person(self, client: str) -> str:
        return f"{self._caller.name} over MCP" + (f" with {client}" if client else "")


def _child_directory(arguments: Json) -> Json:
    if "repo" in arguments:
        raise Refused(why="A job cannot name a repository for its child; give a workdir inside its own directory.")
    return {"workdir": os.path.realpath(arguments["workdir"])} if "workdir" in arguments else {}
