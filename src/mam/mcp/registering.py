"""Registers what an agent submits. The backend has the bounds; here is what holds for every caller."""

from __future__ import annotations

from mam.errors import BadInput
from mam.jobs.rights import SHELL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.mcp.caller import Service
    from mam.mcp.messages import Json

_NOT_FOR_CONTINUATIONS = ("agent", "label", "workdir", "repo", "after", "exclusive")


def register(service: Service, arguments: Json) -> tuple[Job, bool]:
    """The job, and whether this call made it. The store has it when this returns."""
    service.check_may_write()
    prompt = arguments["prompt"]
    if "continues" not in arguments:
        registration = service.backend.register(prompt, _agent(service, arguments), arguments)
        return registration.job, registration.created
    for name in _NOT_FOR_CONTINUATIONS:
        if name in arguments:
            raise BadInput(why=f"a continuation takes {name} from the job that it continues; omit it")
    registration = service.backend.continue_job(arguments["continues"], prompt, arguments)
    return registration.job, registration.created


def _agent(service: Service, arguments: Json) -> str:
    agent: str | None = arguments.get("agent", service.config.default_agent)
    if agent is None:
        from mam.agent_table import AGENTS

        names = ", ".join(name for name in (*AGENTS, *service.config.commands) if name != SHELL)
        raise BadInput(why=f"the argument agent is missing, and the user has no default_agent; one of {names}")
    return agent
