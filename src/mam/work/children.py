"""Jobs that were registered from inside another: who belongs to whom, and how deep it may go."""

from __future__ import annotations

from mam.errors import BadRecord, Refused, UnknownJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.jobs.record import Job
    from mam.registry import Registry

MAX_DEPTH = 3
"""Agents that hand out work to agents that hand out work: deeper than this it is more often a mistake than a plan."""

_CLIMB_LIMIT = 1000
"""Steps upward. `parent_id` can be edited by hand, and a circle must end too."""


def parent_fields(parent: Job, max_depth: int) -> dict[str, Any]:
    """What a job that `parent` registers says about its descent; refused when it would be too deep."""
    depth = parent.depth + 1
    if depth > max_depth:
        raise Refused(
            why=f"Job {parent.job_id} is {parent.depth} deep, and jobs may not be more than {max_depth} deep;"
            " max_depth in config.toml allows more."
        )
    return {"parent_id": parent.job_id, "depth": depth}


def is_descendant(registry: Registry, job_id: str, ancestor: str) -> bool:
    """Whether the job was registered by `ancestor`, or by a job of which that is true."""
    for _ in range(_CLIMB_LIMIT):
        try:
            parent = registry.store.get(job_id).parent_id
        except (UnknownJob, BadRecord):
            return False
        if parent is None or parent == ancestor:
            return parent == ancestor
        job_id = parent
    return False


def open_descendants(registry: Registry, ancestor: str) -> list[str]:
    """Every descendant that has not ended, parents before their children.

    Ended ones are looked through: a job may be done while what it handed out goes on.
    """
    store = registry.store
    family, level = {ancestor: None}, [ancestor]
    while level:
        level = [child for parent in level for child in store.children(parent) if child not in family]
        family.update(dict.fromkeys(level))
    return [job_id for job_id in family if job_id != ancestor and not _has_ended(registry, job_id)]


def _has_ended(registry: Registry, job_id: str) -> bool:
    try:
        return registry.store.get(job_id).status.ended
    except (UnknownJob, BadRecord):
        return True
