"""What a viewer may do with the jobs that it registers."""

from __future__ import annotations

from mam.access.grant import ANSWER, PERMISSIONS, SUBMIT
from mam.access.reading import AuthorizedReading
from mam.config.inbox import is_repository_word
from mam.errors import BadInput, KeyReused, NotAllowed, Refused
from mam.jobs import input_rules
from mam.jobs.continuation import conversation_of
from mam.jobs.draft import draft_job
from mam.jobs.record import Job
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mam.jobs.edit import Edit
    from mam.jobs.record import Json
    from mam.registry.changing import Check
    from mam.stores.port import Registration

CHOICES = frozenset({
    "label", "timeout_sec", "idle_timeout_sec", "artifacts", "priority", "due_ms", "max_retries", "key", "workdir",
    "after", "on_dependency_failure", "exclusive", "workspace", "permissions", "model", "on_idle", "retry_on_exit",
    "repo", "branch", "push", "pull_request", "may_ask",
})  # fmt: skip
"""What can be chosen over the network: parameters of `draft_job`, and the repository. A validation script, a broker, a
parent and a host come from this machine only."""

OF_CONTINUATION = frozenset({
    "timeout_sec", "idle_timeout_sec", "artifacts", "priority", "due_ms", "max_retries", "key", "permissions", "model",
    "on_idle", "retry_on_exit",
})  # fmt: skip
_REPEATED = (
    "prompt", "agent", "agent_session", "timeout_sec", "idle_timeout_sec", "expected_artifacts", "priority",
    "max_retries", "workdir", "after", "on_dependency_failure", "exclusive", "workspace", "permissions", "model",
    "on_idle", "retry_on_exit", "repository", "may_ask",
)  # fmt: skip
"""A repeated request has the same of these; its start time may have been given relative to now."""
_OF_REPOSITORY = ("repo", "branch", "push", "pull_request")
DEFAULT_BRANCH = "main"
_NOT_IN_BRANCHES = frozenset(" ~^:?*[\\\x7f")


class Prompted(Frozen):
    """A prompt that came as a file."""

    job_id: str
    prompt: str
    agent: str
    choices: dict[str, Any]
    inbox: Json
    """The record field of that name."""


class AuthorizedJobs(AuthorizedReading):
    """Verbs that register and change jobs, for one viewer."""

    def register(self, *, prompt: str, agent: str, **choices: Any) -> Registration:
        """Registers a job within the viewer's bounds. It names a repository (and gets a worktree) or a directory;
        otherwise it runs in a fresh directory, never in the one of the server."""
        chosen = self._checked(agent, choices)
        draft = draft_job(job_id=self.registry.store.clock.new_id(), prompt=prompt, agent=agent, **chosen)
        registration = self._visible(self.registry.register_draft(draft))
        if not registration.created:
            _check_repeated(registration.job, draft)
        return registration

    def register_all(self, prompts: Sequence[Prompted]) -> list[Job]:
        """Registers all of them or none."""
        drafts = [
            draft_job(
                job_id=one.job_id, prompt=one.prompt, agent=one.agent, inbox=one.inbox,
                **self._checked(one.agent, one.choices),
            )
            for one in prompts
        ]  # fmt: skip
        if len(drafts) == 1:
            return [self.registry.register_draft(drafts[0]).job]
        if any(draft.after for draft in drafts):
            raise BadInput(why="a prompt with `after` has to be sent alone")
        for draft in drafts:
            self.registry.prepare_signing(draft)
        jobs = self.registry.store.register_all(drafts)
        self.registry.catch_up()
        return jobs

    def _checked(self, agent: str, choices: Mapping[str, Any]) -> dict[str, Any]:
        """The choices as parameters of `draft_job`, if the viewer may make them."""
        self.viewer.need(SUBMIT, "register jobs")
        if more := choices.keys() - CHOICES:
            raise BadInput(why=f"{min(more)[:40]!r} cannot be chosen over the network")
        kept = {name: choice for name, choice in choices.items() if name not in _OF_REPOSITORY}
        chosen = {**kept, **_place(choices), "registered_by": self.viewer.token}
        self._check_bounds(agent, chosen.get("label", agent), choices.get("repo"), chosen.get("permissions"))
        chosen["after"] = [self.get(needed).job_id for needed in chosen.get("after", ())]
        return {**self.defaults, **chosen}

    def retry(self, job: str, *, continues: bool = False) -> Registration:
        old = self.own(job, "retry")
        self._check_job(old)
        self._check_here(old, resumes=continues)
        return self._visible(self.registry.retry(old.job_id, continues=continues))

    def continue_job(self, job: str, *, prompt: str, **choices: Any) -> Registration:
        """The permissions are always named: the last job of the chain may have more than this viewer can grant."""
        old = self.own(job, "continue")
        if more := choices.keys() - OF_CONTINUATION:
            raise BadInput(why=f"{min(more)[:40]!r} cannot be chosen for a continuation")
        self._check_job(old, choices.get("permissions"))
        self._check_here(old, resumes=True)
        chosen = {**choices, "permissions": choices.get("permissions", old.permissions)}
        registration = self._visible(self.registry.continue_job(old.job_id, prompt=prompt, **chosen))
        if not registration.created and registration.job.prompt != prompt:
            raise KeyReused(job=registration.job.job_id, field="prompt")
        return registration

    def cancel(self, job: str, *, reason: str | None = None, check: Check | None = None) -> Job:
        """`check` raises if the job is not the one that the viewer saw; so it does for `edit`."""
        return self.registry.cancel(self.own(job, "cancel").job_id, reason=reason, check=check)

    def edit(self, job: str, changes: Edit, *, seen: Job | None = None, check: Check | None = None) -> Job:
        found = self.own(job, "edit")
        if changes.label is not None:
            self._check_label(changes.label)
        return self.registry.edit(found.job_id, changes, by=self.viewer.name, seen=seen, check=check)

    def mark_seen(self, job: str) -> Job:
        """A person looked at the outcome. The caller may answer questions, or registered the job."""
        found = self.get(job)
        if not self.viewer.may(ANSWER) and not self.is_own(found):
            self.viewer.need(ANSWER, "mark this job as seen")
        return self.registry.mark_seen(found.job_id, by=self.viewer.name)

    def own(self, job: str, verb: str) -> Job:
        """A job that the viewer may change."""
        found = self.get(job)
        if self.is_own(found):
            return found
        self.viewer.need(SUBMIT, f"{verb} jobs")
        raise NotAllowed(who=self.viewer.label, what=f"{verb} job {found.job_id}", why=": it did not register it")

    # -- bounds ------------------------------------------------------------------------------------------------------

    def _check_bounds(self, agent: str, label: str, repo: str | None, permissions: str | None) -> None:
        grant = self.viewer.grant
        if not grant.allows_agent(agent):
            raise self._beyond(f"register jobs for the agent {agent[:80]!r}", grant.agents)
        self._check_label(label)
        if not grant.allows_repo(repo):
            what = "register jobs without a repository" if repo is None else f"register jobs in {repo[:80]!r}"
            raise self._beyond(what, grant.repos)
        wanted = Job.field_defaults["permissions"] if permissions is None else permissions
        if wanted in PERMISSIONS and not grant.allows_permissions(wanted):
            raise self._beyond(f"grant the permissions {wanted!r}", (grant.max_permissions,))

    def _check_label(self, label: str) -> None:
        if not self.viewer.grant.allows_label(label):
            raise self._beyond(f"use the label {label[:80]!r}", self.viewer.grant.labels)

    def _check_job(self, old: Job, permissions: str | None = None) -> None:
        repo = (old.repository or {}).get("name")
        self._check_bounds(old.agent, old.agent_session, repo, permissions or old.permissions)

    def _beyond(self, what: str, allowed: tuple[str, ...]) -> NotAllowed:
        return NotAllowed(who=self.viewer.label, what=what, why=f", only {', '.join(allowed)}" if allowed else "")

    def _check_here(self, old: Job, *, resumes: bool) -> None:
        """A conversation that is gone from this host is reported before anything is registered."""
        if resumes and conversation_of(old) is not None:
            from mam.work.conversation_checks import check_can_resume_here

            check_can_resume_here(old)

    def _visible(self, registration: Registration) -> Registration:
        """A key belongs to the whole store; one of a job that the viewer may not see is taken."""
        if not registration.created and not self.may_see(registration.job):
            raise Refused(why="Another job has this key; choose another key.")
        return registration


def _check_repeated(found: Job, draft: Job) -> None:
    for name in _REPEATED:
        if getattr(found, name) != getattr(draft, name):
            raise KeyReused(job=found.job_id, field={"agent_session": "label"}.get(name, name))


def _place(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Where a job runs that came over the network, as parameters of `draft_job`."""
    repo, workdir, workspace = (choices.get(name) for name in ("repo", "workdir", "workspace"))
    if repo is not None:
        if workdir is not None:
            raise BadInput(why="give a repo or a workdir, not both")
        return {"repository": _repository(repo, choices), "workspace": workspace or "worktree"}
    if more := [name for name in _OF_REPOSITORY if name in choices]:
        raise BadInput(why=f"{more[0]} needs a repo")
    if workdir is None:
        if workspace not in (None, "fresh"):
            raise BadInput(why=f"the workspace {workspace!r} needs a repo or a workdir")
        return {"workspace": "fresh"}
    if not workdir.startswith("/"):
        raise BadInput(why="workdir must be an absolute path")
    return {"workspace": workspace or "workdir"}


def _repository(repo: str, choices: Mapping[str, Any]) -> dict[str, Any]:
    """The worker's `[repos]` gives its address, so the name alone reaches nothing."""
    if not all(is_repository_word(word) for word in repo.split("/")) or repo.count("/") > 1:
        raise BadInput(why=f"{repo[:80]!r} is not the name of a repository, as in owner/repo")
    branch = input_rules.check_name("branch", choices.get("branch") or DEFAULT_BRANCH)
    is_odd = branch.startswith(("-", "/")) or branch.endswith("/") or ".." in branch
    if is_odd or not _NOT_IN_BRANCHES.isdisjoint(branch):
        raise BadInput(why=f"{branch[:80]!r} is not the name of a branch")
    return {
        "name": repo, "branch": branch, "push": choices.get("push", False),
        "pull_request": choices.get("pull_request", False),
    }  # fmt: skip
