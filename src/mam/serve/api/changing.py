"""Jobs, to change: register, edit, cancel, retry, continue, mark as seen."""

from __future__ import annotations

from functools import partial

from mam.access.grant import ANSWER, SUBMIT
from mam.errors import JobChanged, Refused
from mam.jobs.edit import Edit
from mam.jobs.input_rules import PATH_LIMIT
from mam.serve.api.shown import etag_of_job, job_answer
from mam.serve.route import Route
from mam.serve.schemas import (
    IF_MATCH,
    JOB,
    JOB_PATTERN,
    KEY,
    LIMITS,
    NAMES_LIMIT,
    PROMPT,
    REASON,
    flag,
    name,
    one_of,
    record,
    ref,
    several,
    text,
)
from mam.util.human_time import parse_when

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.jobs.record import Job
    from mam.serve.call import Answer, Call
    from mam.stores.port import Registration

NEW_JOB = record(
    {
        "prompt": PROMPT,
        "agent": name("The agent: claude-code, codex, shell, human, …; by default `default_agent` of the settings."),
        "label": name("The label, which selects the worker; by default the name of the agent."),
        "repo": text(200, "The repository to work on, as owner/repo; `[repos]` of the worker names its address.",
                     pattern="^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99})?$"),
        "branch": text(200, "The branch of the repository to begin from; `main` by default.",
                       pattern="^[A-Za-z0-9_][A-Za-z0-9_-]*([./][A-Za-z0-9_-]+)*$",
),
        "push": flag("Whether to push the outcome as a branch."),
        "pull_request": flag("Whether to open a pull request."),
        "workdir": text(PATH_LIMIT, "The directory to work in, an absolute path. Without it and `repo`: a fresh one.",
                        pattern="^/[^\\x00]*$"),
        "workspace": one_of("workspace", "In the directory itself, in a fresh one, or in a git worktree."),
        "after": several(text(64, "A job.", pattern=JOB_PATTERN), "Start after these have completed.", NAMES_LIMIT),
        "on_dependency_failure": one_of("on_dependency_failure", "What happens if one of them does not complete."),
        "exclusive": name("At most one job with this key runs at a time."),
        "ask": flag("Whether the agent may ask a person."),
        **LIMITS,
    },
    required=("prompt",),
    dependentRequired={"branch": ["repo"], "push": ["repo"], "pull_request": ["repo"]},
    allOf=[
        {"not": {"required": ["repo", "workdir"]}},
        {
            "if": {"properties": {"workspace": {"enum": ["workdir", "worktree"]}}, "required": ["workspace"]},
            "then": {"anyOf": [{"required": ["repo"]}, {"required": ["workdir"]}]},
        },
    ],
)  # fmt: skip
CONTINUATION = record({"prompt": PROMPT, **LIMITS}, required=("prompt",))
EDIT = record({
    "prompt": PROMPT, "label": name("The new label."), "priority": LIMITS["priority"], "at": LIMITS["at"],
})  # fmt: skip


def register_job(call: Call) -> Answer:
    chosen = _choices(call)
    agent = chosen.pop("agent", None) or call.server.config.default_agent
    if agent is None:
        raise Refused(why="The request names no agent, and the settings of the server have no default_agent.")
    return _registered(call, call.rights.register(prompt=chosen.pop("prompt"), agent=agent, **chosen))


def continue_job(call: Call) -> Answer:
    chosen = _choices(call)
    return _registered(call, call.rights.continue_job(call.job, prompt=chosen.pop("prompt"), **chosen))


def retry_job(call: Call) -> Answer:
    return _registered(call, call.rights.retry(call.job, continues=call.body.get("continue", False)))


def edit_job(call: Call) -> Answer:
    now = call.server.registry.store.clock.now().wall_ms
    at = call.body.get("at")
    changes = Edit(
        prompt=call.body.get("prompt"), label=call.body.get("label"), priority=call.body.get("priority"),
        due_ms=None if at is None else parse_when(at, now, "at"),
    )  # fmt: skip
    return job_answer(call.rights.edit(call.job, changes, check=_match(call)))


def cancel_job(call: Call) -> Answer:
    return job_answer(call.rights.cancel(call.job, reason=call.body.get("reason"), check=_match(call)))


def see_job(call: Call) -> Answer:
    return job_answer(call.rights.mark_seen(call.job))


def _choices(call: Call) -> dict[str, Any]:
    """The body in the words of `draft_job`."""
    chosen = dict(call.body)
    if "at" in chosen:
        now = call.server.registry.store.clock.now().wall_ms
        chosen["due_ms"] = parse_when(chosen.pop("at"), now, "at")
    if "ask" in chosen:
        chosen["may_ask"] = chosen.pop("ask")
    key = call.get(KEY.name)
    return chosen if key is None else {**chosen, "key": key}


def _registered(call: Call, registration: Registration) -> Answer:
    job = registration.job
    headers = {"location": f"{call.prefix}/api/v1/jobs/{job.job_id}"}
    return job_answer(job, status=201 if registration.created else 200, headers=headers)


def _match(call: Call) -> Callable[[Job], None] | None:
    given = call.get(IF_MATCH.name)
    if given is None or given.strip() == "*":
        return None
    return partial(_check_tag, [tag.strip() for tag in given.split(",")])


def _check_tag(tags: list[str], job: Job) -> None:
    if etag_of_job(job) not in tags:
        raise JobChanged(job=job.job_id)


_NEW = {200: "A job with this key, or a retry of the same job, existed; this is that one."}

ROUTES = (
    Route(
        method="POST",
        path="/jobs",
        name="register_job",
        summary="Register a job.",
        scopes=(SUBMIT,),
        handler=register_job,
        params=(KEY,),
        body=NEW_JOB,
        status=201,
        answer=ref("Job"),
        others=_NEW,
        verb="register",
    ),
    Route(
        method="PATCH",
        path="/jobs/{job}",
        name="edit_job",
        summary="Change a job that no worker has claimed.",
        scopes=(SUBMIT,),
        handler=edit_job,
        params=(JOB, IF_MATCH),
        body=EDIT,
        answer=ref("Job"),
        verb="edit",
    ),
    Route(
        method="POST",
        path="/jobs/{job}/cancel",
        name="cancel_job",
        summary="Cancel a job.",
        scopes=(SUBMIT,),
        handler=cancel_job,
        params=(JOB, IF_MATCH),
        body=record({"reason": REASON}),
        needs_body=False,
        answer=ref("Job"),
        verb="cancel",
    ),
    Route(
        method="POST",
        path="/jobs/{job}/retry",
        name="retry_job",
        summary="Register an ended job again.",
        scopes=(SUBMIT,),
        handler=retry_job,
        params=(JOB,),
        needs_body=False,
        status=201,
        answer=ref("Job"),
        body=record({"continue": flag("In the same conversation and directory.")}),
        others=_NEW,
        verb="retry",
    ),
    Route(
        method="POST",
        path="/jobs/{job}/continue",
        name="continue_job",
        scopes=(SUBMIT,),
        handler=continue_job,
        summary="Add work to the conversation of a job.",
        params=(JOB, KEY),
        body=CONTINUATION,
        status=201,
        answer=ref("Job"),
        others=_NEW,
        verb="continue",
    ),
    Route(
        method="POST",
        path="/jobs/{job}/seen",
        name="see_job",
        summary="Mark the outcome of a job as seen.",
        scopes=(ANSWER, SUBMIT),
        handler=see_job,
        params=(JOB,),
        answer=ref("Job"),
        verb="seen",
    ),
)
