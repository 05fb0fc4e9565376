"""Jobs that a job submits: its children, with no more rights than it has."""

from __future__ import annotations

import os

from mam.errors import MamError, Refused, UnknownJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.config.settings import Config
    from mam.jobs.record import Job
    from mam.jobs.rights import Grants
    from mam.mcp.caller import Service
    from mam.mcp.messages import Json
    from mam.stores.port import Registration

CHILDREN_LIMIT = 100
"""Children of one job: more are a loop."""


def register_child(service: Service, prompt: str, agent: str, asked: Json) -> Registration:
    """Registers a child of the caller's own job."""
    from mam.jobs.rights import child_choices, parent_fields

    registry, config = service.registry, service.config
    parent = own_job(service)
    if len(registry.store.children(parent.job_id)) >= CHILDREN_LIMIT:
        raise Refused(why=f"Job {parent.job_id} has {CHILDREN_LIMIT} children, and may have no more.")
    choices = child_choices(parent, agent, asked, _grants(config), _place(parent), os.path.realpath)
    choices["after"] = [_family(service, name) for name in choices.get("after", ())]
    choices |= {**parent_fields(parent, config.max_depth), "origin_host": os.uname().nodename}
    choices |= {"broker": parent.broker, "may_ask": parent.may_ask}
    return registry.register(prompt=prompt, agent=agent, **choices)


def own_job(service: Service) -> Job:
    name = service.caller.own_job or ""
    try:
        return service.registry.get_exact(name)
    except UnknownJob:
        raise Refused(
            why=f"This runs inside job {name[:80]}, which is not in {service.registry.store.address}."
        ) from None


def check_family(service: Service, job_id: str) -> None:
    """Inside a job, only its own descendants can be changed."""
    from mam.work.children import is_descendant

    own = service.caller.own_job
    if own is not None and not is_descendant(service.registry, job_id, own):
        raise Refused(
            why=f"Job {job_id} was not submitted by job {own}, which this runs in; only the user can do this."
        )


def _family(service: Service, name: str) -> str:
    job_id = service.registry.resolve(name)
    if job_id != service.caller.own_job:
        check_family(service, job_id)
    return job_id


def _place(parent: Job) -> str:
    place = (parent.run or {}).get("place") or parent.workdir
    if not isinstance(place, str):
        raise Refused(why=f"Job {parent.job_id} has no directory yet, so its child could have none.")
    return os.path.realpath(place)


def _grants(config: Config) -> Grants:
    from mam.jobs.rights import Grants

    script = config.children.get("validation")
    validation = None
    if script is not None:
        from mam.work.validator import trusted_validation

        validation = trusted_validation(os.path.expanduser(script))
    return Grants(
        agents=tuple(config.children.get("agents", ())), labels=tuple(config.children.get("labels", ())),
        worktrees=config.children.get("worktrees", False), validation=validation,
    )  # fmt: skip


def inside_job() -> str | None:
    """The job inside which this process runs, by its environment or by that of its ancestors: some clients start their
    servers with an environment of their own."""
    from mam.machine.agent_tree import variable_of_agent

    try:
        return variable_of_agent("MAM_JOB_ID")
    except (OSError, MamError):
        return None
