"""The rights of a child: at most those of the job that registers it.

A request at a worker's door comes from an agent, so each choice in it is decided here: allowed, limited to the parent's
value, set by the worker, or rejected. A choice that is in no table below is rejected.
"""

from __future__ import annotations

import math

from mam.errors import BadInput, Refused
from mam.jobs.draft import HUMAN, draft_job
from mam.jobs.record import CHOICES, Job
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.jobs.record import Json

SHELL = "shell"

ALLOWED: dict[str, type] = {
    "artifacts": list, "due_ms": int, "on_dependency_failure": str, "exclusive": str, "retry_on_exit": bool,
}  # fmt: skip
"""These give a child no rights: which artifacts it must leave, when it can start, and which failures are retried."""

NAMED: dict[str, type] = {"label": str, "workdir": str, "workspace": str, "key": str, "after": list}
"""Each has its own rule in `child_choices`; the door resolves `after` among the parent and its descendants."""

WIDTHS: dict[str, Callable[[Any], float]] = {
    "permissions": CHOICES["permissions"].index,
    "timeout_sec": lambda seconds: seconds or math.inf,
    "idle_timeout_sec": lambda seconds: seconds or math.inf,
    "on_idle": ("stop", "show").index,
    "max_retries": float,
    "priority": float,
}
"""These are at most the parent's. Without a choice, or with the default, a child gets the smaller of the two."""

SET_BY_WORKER = ("parent_id", "depth", "origin_host", "may_ask", "registered_by")
"""The worker sets these; their values in a request are ignored."""

REJECTED = {
    "validation": "`validation` in [children] of the user's config.toml names the script that checks children",
    "job_id": "the store gives ids", "retry_of": "only the user retries a job", "repository": "only the inbox sets it",
    "inbox": "only the inbox sets it", "broker": "the user's settings name the broker",
    "continues": "only the user continues a conversation", "model": "the user's settings name the model",
    "topic_prefix": "the worker sets it", "auth_token": "ask for a token with `sign`",
}  # fmt: skip

_TIMES = ("timeout_sec", "idle_timeout_sec", "on_idle")


MAX_DEPTH = 3
"""The default of the setting `max_depth`: more levels of agents that register jobs are usually a mistake."""


def can_be_parent(job: Job) -> bool:
    """An ended job registers nothing: its id is a leftover in the environment of a shell."""
    return not job.status.ended


def parent_fields(parent: Job, max_depth: int) -> Json:
    """The fields of a child that name its parent; Refused when the parent has ended or the child would be too deep."""
    if not can_be_parent(parent):
        raise Refused(why=f"Job {parent.job_id} is {parent.status} and cannot register a job.")
    depth = parent.depth + 1
    if depth > max_depth:
        raise Refused(
            why=f"Job {parent.job_id}, the parent by MAM_JOB_ID, is {parent.depth} deep, and jobs may not be more than"
            f" {max_depth} deep; max_depth in config.toml allows more."
        )
    return {"parent_id": parent.job_id, "depth": depth, "registered_by": parent.registered_by}


class Grants(Frozen):
    """What the user's settings in `[children]` allow."""

    agents: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    worktrees: bool = False
    validation: Json | None = None


def child_choices(
    parent: Job, agent: str, asked: object, grants: Grants, place: str, resolve: Callable[[str], str]
) -> Json:
    """The choices of `draft_job` for a job that `parent`, which runs in `place`, registers.

    `resolve` follows links. BadInput for a choice that no job can have, Refused for one that this parent cannot grant.
    """
    chosen = _well_formed(asked)
    draft_job(job_id="draft", prompt="draft", agent=agent, **{**chosen, "after": ()})
    if not _can_run_anything(parent):
        _check_names(parent, agent, chosen.get("label"), grants)
        _check_workspace(parent, chosen.get("workspace"), grants)
    for name, width in WIDTHS.items():
        if not _is_free(parent, agent, name):
            chosen[name] = _at_most(parent, name, chosen.get(name, Job.field_defaults[name]), width)
    chosen["workdir"] = _check_inside(place, resolve(chosen.get("workdir", place)), parent)
    if "key" in chosen:  # prefixed by the parent's id, so that no child takes a key that the user chooses later
        chosen["key"] = f"{parent.job_id}/{chosen['key']}"
    return {**chosen, "validation": grants.validation}


def _well_formed(asked: object) -> Json:
    if not isinstance(asked, dict):
        raise BadInput(why="choices must be a JSON object")
    kinds = {**ALLOWED, **NAMED, **{name: type(Job.field_defaults[name]) for name in WIDTHS}}
    chosen: Json = {}
    for name, value in asked.items():
        if value is None or name in SET_BY_WORKER:
            continue
        if name in REJECTED:
            raise Refused(why=f"A job cannot choose {name} for its child: {REJECTED[name]}.")
        if name not in kinds:
            raise BadInput(why=f"{name[:40]!r} cannot be chosen for a child")
        if type(value) is not kinds[name] or (type(value) is list and not all(type(item) is str for item in value)):
            raise BadInput(why=f"{name} has the wrong type")
        chosen[name] = value
    if not chosen.get("workdir", "/").startswith("/"):
        raise BadInput(why="workdir must be an absolute path")
    return chosen


def _can_run_anything(parent: Job) -> bool:
    """An agent that can run any command can start every other agent without mam, so its children can have any agent."""
    return parent.agent == SHELL or parent.permissions == "full"


def _check_workspace(parent: Job, workspace: str | None, grants: Grants) -> None:
    """git runs outside the agent's sandbox, and a `.git` that the agent wrote can point to any repository."""
    if workspace == "worktree" and not grants.worktrees:
        raise Refused(
            why=f"Job {parent.job_id} cannot register a job with a worktree;"
            " `worktrees` in [children] of the user's config.toml allows it."
        )


def _check_names(parent: Job, agent: str, label: str | None, grants: Grants) -> None:
    agents = (parent.agent, HUMAN, *grants.agents)
    if agent not in agents:
        raise _refusal(parent, "agent", agent, agents)
    labels = (agent, parent.agent_session, *grants.labels)
    if label is not None and label not in labels:
        raise _refusal(parent, "label", label, labels)


def _refusal(parent: Job, what: str, word: str, words: tuple[str, ...]) -> Refused:
    allowed = ", ".join(dict.fromkeys(words))
    return Refused(
        why=f"Job {parent.job_id} cannot register a job for the {what} {word[:80]!r}, only for {allowed};"
        f" `{what}s` in [children] of the user's config.toml allows more."
    )


def _is_free(parent: Job, agent: str, name: str) -> bool:
    """No time limit applies to a person, and an idle timeout with `show` stops no job."""
    return (agent == HUMAN and name in _TIMES) or (name == "idle_timeout_sec" and parent.on_idle == "show")


def _at_most(parent: Job, name: str, wanted: Any, width: Callable[[Any], float]) -> Any:
    has = getattr(parent, name)
    if width(wanted) <= width(has):
        return wanted
    if wanted != Job.field_defaults[name]:
        raise Refused(why=f"Job {parent.job_id} has {name} {has} and cannot give its child {wanted}.")
    return has


def _check_inside(place: str, path: str, parent: Job) -> str:
    if path != place and not path.startswith(f"{place.rstrip('/')}/"):
        raise Refused(why=f"Job {parent.job_id} runs in {place}, and the workdir {path} of its child is outside of it.")
    return path
