"""Jobs that a job submits without a worker's door: its children, with no more rights than it has."""

from __future__ import annotations

import os

from mam.errors import Refused, UnknownJob
from mam.util.frozen import Frozen
from mam.work.children import check_room, is_descendant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.config.settings import Config
    from mam.jobs.record import Job
    from mam.mcp.messages import Json
    from mam.registry import Registry
    from mam.stores.port import Registration


class Child(Frozen):
    """What a job asks for its child."""

    prompt: str
    agent: str
    asked: Json


def register_child(registry: Registry, config: Config, own: str, child: Child) -> Registration:
    """Registers a child of the job `own`."""
    from mam.jobs.rights import child_choices, parent_fields
    from mam.work.context import children_grants

    parent = own_job(registry, own)
    check_room(registry, parent.job_id)
    choices = child_choices(parent, child.agent, child.asked, children_grants(config), _place(parent), os.path.realpath)
    choices["after"] = [_family(registry, own, name) for name in choices.get("after", ())]
    choices |= {**parent_fields(parent, config.max_depth), "origin_host": os.uname().nodename}
    choices |= {"broker": parent.broker, "may_ask": parent.may_ask}
    return registry.register(prompt=child.prompt, agent=child.agent, **choices)


def is_leftover(registry: Registry, own: str) -> bool:
    """Whether this job is not in the store, or has ended."""
    try:
        return registry.get_exact(own).status.ended
    except UnknownJob:
        return True


def own_job(registry: Registry, own: str) -> Job:
    try:
        return registry.get_exact(own)
    except UnknownJob:
        raise Refused(why=f"This runs inside job {own[:80]}, which is not in {registry.store.address}.") from None


def check_child(registry: Registry, job_id: str, own: str) -> None:
    if not is_descendant(registry, job_id, own):
        raise Refused(why=f"Job {job_id} is not a child of job {own}, inside which this runs; only the user can do it.")


def _family(registry: Registry, own: str, name: str) -> str:
    job_id = registry.resolve(name)
    if job_id != own:
        check_child(registry, job_id, own)
    return job_id


def _place(parent: Job) -> str:
    place = (parent.run or {}).get("place") or parent.workdir
    if not isinstance(place, str):
        raise Refused(why=f"Job {parent.job_id} has no directory yet, so its child could have none.")
    return os.path.realpath(place)
