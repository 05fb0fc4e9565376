"""Registers what an agent submits: the caller decides the bounds, the arguments choose within them."""

from __future__ import annotations

import os

from mam.errors import BadInput, Refused
from mam.mcp.caller import SHELL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.jobs.record import Job
    from mam.mcp.caller import Service
    from mam.mcp.messages import Json
    from mam.stores.port import Registration

_PASSED = ("label", "model", "after", "exclusive", "artifacts", "key")
_NOT_FOR_CONTINUATIONS = ("agent", "label", "workdir", "repo", "after", "exclusive")


def register(service: Service, arguments: Json) -> tuple[Job, bool]:
    """The job, and whether this call made it. The store has it when this returns."""
    service.check_may_write()
    registration = _register(service, arguments)
    return registration.job, registration.created


def _register(service: Service, arguments: Json) -> Registration:
    prompt = arguments["prompt"]
    if "continues" in arguments:
        return _continue(service, prompt, arguments)
    agent = _agent(service, arguments)
    if agent == SHELL and not service.caller.accepts_shell:
        raise Refused(
            why="An agent cannot submit shell jobs here: that would be a shell without permission."
            " The user can start this server with `mam mcp --accept shell`."
        )
    choices = {name: arguments[name] for name in _PASSED if name in arguments}
    if service.caller.own_job is not None:
        from mam.mcp.children import register_child

        return register_child(service, prompt, agent, {**choices, **_child_directory(arguments)})
    choices |= _place(service, arguments) | {"origin_host": os.uname().nodename, "may_ask": _may_ask(service)}
    return service.open(create=True).register(prompt=prompt, agent=agent, **choices)


def _continue(service: Service, prompt: str, arguments: Json) -> Registration:
    from mam.work.conversation_checks import check_can_resume_here

    if service.caller.own_job is not None:
        raise Refused(why="A job cannot continue another conversation: only the user does.")
    for name in _NOT_FOR_CONTINUATIONS:
        if name in arguments:
            raise BadInput(why=f"a continuation takes {name} from the job that it continues; omit it")
    old = service.registry.get(arguments["continues"])
    if not service.caller.accepts_shell and (old.agent == SHELL or old.permissions == "full"):
        what = "runs a shell" if old.agent == SHELL else "has full permissions"
        raise Refused(
            why=f"Job {old.job_id} {what}, and an agent cannot add to it here."
            f" The user can: `mam continue {old.job_id[:8]}`, or start this server with `mam mcp --accept shell`."
        )
    check_can_resume_here(old)
    choices = {name: arguments[name] for name in ("model", "artifacts", "key") if name in arguments}
    return service.registry.continue_job(old.job_id, prompt=prompt, **choices)


def _agent(service: Service, arguments: Json) -> str:
    agent: str | None = arguments.get("agent", service.config.default_agent)
    if agent is None:
        from mam.agent_table import AGENTS

        names = ", ".join(name for name in (*AGENTS, *service.config.commands) if name != SHELL)
        raise BadInput(why=f"the argument agent is missing, and the user has no default_agent; one of {names}")
    return agent


def _may_ask(service: Service) -> bool:
    return bool(service.config.questions.get("ask", not os.environ.get("CI")))


def _place(service: Service, arguments: Json) -> dict[str, Any]:
    """Where the job runs: a repository that the worker knows, a directory within bounds, or a fresh directory."""
    directory = service.caller.directory
    if "repo" in arguments:
        if "workdir" in arguments:
            raise BadInput(why="give repo or workdir, not both")
        return {"repository": _repository(service, arguments["repo"]), "workspace": "worktree"}
    if "workdir" not in arguments and directory is None:
        return {"workspace": "fresh"}
    return {"workdir": _workdir(service, arguments.get("workdir", "."))}


def _repository(service: Service, name: str) -> Json:
    if name not in service.config.repos:
        known = ", ".join(sorted(service.config.repos)) or "none"
        raise BadInput(why=f"the repository {name[:80]!r} is not in [repos] of the user's settings; there are: {known}")
    return {"name": name, "branch": None, "push": False, "pull_request": False}


def _workdir(service: Service, path: str) -> str:
    """Inside the directory of the caller, or one that the user accepted: a job may edit all of its directory."""
    from mam.jobs.input_rules import PATH_LIMIT, check_text

    caller = service.caller
    check_text("workdir", path, PATH_LIMIT)
    here = caller.directory or "/"
    whole = os.path.realpath(os.path.join(here, os.path.expanduser(path)))
    allowed = [*([caller.directory] if caller.directory else []), *caller.accepted_directories]
    if not any(whole == one or whole.startswith(f"{one.rstrip('/')}/") for one in map(os.path.realpath, allowed)):
        raise Refused(
            why=f"{whole} is outside of {', '.join(allowed) or 'every directory that is accepted here'}."
            f" The user can start this server with `mam mcp --accept {whole}`."
        )
    if not os.path.isdir(whole):
        raise BadInput(why=f"the workdir {whole} is not a directory")
    return whole


def _child_directory(arguments: Json) -> Json:
    if "repo" in arguments:
        raise Refused(why="A job cannot name a repository for its child; give a workdir inside its own directory.")
    return {"workdir": os.path.realpath(arguments["workdir"])} if "workdir" in arguments else {}
