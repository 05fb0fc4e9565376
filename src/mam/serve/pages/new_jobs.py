"""The form of a new job, and the form that edits one: what they offer, and what they mean."""

from __future__ import annotations

import os
import shlex

from mam.access.grant import SUBMIT
from mam.agent_table import AGENTS
from mam.errors import BadInput
from mam.jobs.edit import Edit
from mam.jobs.record import CHOICES
from mam.registry.listing import JobFilter
from mam.util.frozen import Frozen
from mam.util.human_time import parse_when
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mam.access.registry import AuthorizedRegistry
    from mam.jobs.record import Job

REMEMBERED = 100
"""The latest jobs, whose labels and places the form suggests."""
FIELDS = ("prompt", "agent", "label", "repo", "branch", "workdir", "worktree", "model", "permissions", "ask",
          "artifacts", "after", "priority", "at")  # fmt: skip
_PERMISSIONS = {
    "ask": "Ask before changes", "edit": "Change its directory", "full": "Do anything",
}  # fmt: skip


class NewJobForm(Frozen):
    values: dict[str, str]
    agents: tuple[str, ...]
    labels: tuple[str, ...]
    repos: tuple[str, ...]
    workdirs: tuple[str, ...]
    project: str
    """The directory of the project, if the store is in one."""
    permissions: tuple[tuple[str, str], ...]
    hindrance: str
    problem: str = ""


def new_job_form(registry: AuthorizedRegistry, values: Mapping[str, str], problem: str = "") -> NewJobForm:
    """What the newest jobs used comes first; a bound of the viewer's token leaves the rest out."""
    grant = registry.viewer.grant
    can = registry.viewer.may(SUBMIT)
    jobs = registry.page(JobFilter(), REMEMBERED).jobs if can else ()
    repos = [str(job.repository["name"]) for job in jobs if job.repository and job.repository.get("name")]
    levels, project = CHOICES["permissions"], _project(registry)
    return NewJobForm(
        values=_defaults(values, jobs), problem=problem,
        agents=tuple(name for name in _unique([*(job.agent for job in jobs), *AGENTS]) if grant.allows_agent(name)),
        labels=tuple(name for name in _unique(job.agent_session for job in jobs) if grant.allows_label(name)),
        repos=tuple(name for name in _unique(repos) if grant.allows_repo(name)),
        workdirs=tuple(_unique([*(job.workdir for job in jobs), project]))[:20], project=project,
        permissions=tuple((name, _PERMISSIONS[name]) for name in levels if grant.allows_permissions(name)),
        hindrance="" if can else "Your token may not register jobs.",
    )  # fmt: skip


def _project(registry: AuthorizedRegistry) -> str:
    address = registry.registry.store.address
    path = "" if "://" in address else os.path.abspath(address)
    return path.removesuffix("/.mam/jobs") if path.endswith("/.mam/jobs") else ""


def choices_of(values: Mapping[str, str], now_ms: int) -> tuple[str, str, dict[str, Any]]:
    """Prompt, agent and the choices of `register`; BadInput in one sentence."""
    given = {name: values.get(name, "").strip() for name in FIELDS}
    if not given["prompt"]:
        raise BadInput(why="write what the job is to do")
    if not given["agent"]:
        raise BadInput(why="choose an agent")
    choices: dict[str, Any] = {"may_ask": given["ask"] == "on", "permissions": given["permissions"] or "edit"}
    for name in ("label", "model", "workdir"):
        if given[name]:
            choices[name] = given[name]
    if given["workdir"]:
        choices["workspace"] = "worktree" if given["worktree"] == "on" else "workdir"
    if given["repo"]:
        choices |= {"repo": given["repo"], **({"branch": given["branch"]} if given["branch"] else {})}
    choices["artifacts"] = [line.strip() for line in given["artifacts"].splitlines() if line.strip()]
    choices["after"] = given["after"].replace(",", " ").split()
    if given["priority"]:
        choices["priority"] = _number(given["priority"])
    if given["at"]:
        choices["due_ms"] = parse_when(given["at"], now_ms, "the start")
    return values.get("prompt", "").replace("\r\n", "\n").strip(), given["agent"], choices


def edit_of(values: Mapping[str, str], job: Job, now_ms: int) -> Edit:
    """What differs from the job as the form showed it."""
    prompt, label = values.get("prompt", "").replace("\r\n", "\n").strip(), values.get("label", "").strip()
    priority, at = values.get("priority", "").strip(), values.get("at", "").strip()
    return Edit(
        prompt=None if prompt == job.prompt.strip() else prompt,
        label=label if label and label != job.agent_session else None,
        priority=_number(priority) if priority and priority != str(job.priority) else None,
        due_ms=parse_when(at, now_ms, "the start") if at else None,
    )


def command_of(values: Mapping[str, str]) -> str:
    """The command that registers the same job."""
    words = ["mam", "register", _short(values.get("prompt", "")) or "…"]
    for name, option in (("agent", "--agent"), ("label", "-s"), ("workdir", "--workdir"), ("model", "--model"),
                         ("permissions", "--permissions"), ("priority", "--priority"), ("at", "--at")):  # fmt: skip
        if values.get(name, "").strip() and not (name == "permissions" and values[name] == "edit"):
            words += [option, values[name].strip()]
    for artifact in values.get("artifacts", "").split():
        words += ["--artifact", artifact]
    for job in values.get("after", "").replace(",", " ").split():
        words += ["--after", job]
    words += ["--worktree"] if values.get("workdir") and values.get("worktree") == "on" else []
    words += [] if values.get("ask") == "on" else ["--no-ask"]
    return one_line(shlex.join(words))


def _defaults(values: Mapping[str, str], jobs: tuple[Job, ...]) -> dict[str, str]:
    known = {name: values.get(name, "") for name in FIELDS}
    if not any(known.values()):
        known["ask"] = "on"
        known["permissions"] = "edit"
        if jobs:
            known["agent"] = jobs[0].agent
            known["label"] = "" if jobs[0].agent_session == jobs[0].agent else jobs[0].agent_session
            known["workdir"] = jobs[0].workdir or ""
        known["worktree"] = "" if jobs and jobs[0].workspace == "workdir" else "on"
    return known


def _unique(names: Any) -> list[str]:
    return list(dict.fromkeys(name for name in names if name))


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadInput(why=f"{text[:40]!r} is not a whole number") from None


def _short(prompt: str) -> str:
    line = prompt.strip().partition("\n")[0]
    return line if len(line) <= 60 else f"{line[:59]}…"
