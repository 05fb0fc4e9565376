"""The descendants of a job: the jobs that it registered, and those that they registered."""

from __future__ import annotations

from mam.errors import BadRecord, Refused, UnknownJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.registry import Registry

MOST_CHILDREN = 1000
_CLIMB_LIMIT = 1000
"""Limits the steps upward: a user can edit `parent_id` into a cycle."""


def is_descendant(registry: Registry, job_id: str, ancestor: str) -> bool:
    """Whether `ancestor` registered the job, directly or through other jobs."""
    for _ in range(_CLIMB_LIMIT):
        try:
            parent = registry.store.get(job_id).parent_id
        except (UnknownJob, BadRecord):
            return False
        if parent is None or parent == ancestor:
            return parent == ancestor
        job_id = parent
    return False


def check_room(registry: Registry, job_id: str) -> None:
    """Refused for one child more than any task needs: its agent repeats itself."""
    if len(registry.store.children(job_id)) >= MOST_CHILDREN:
        raise Refused(why=f"Job {job_id} has {MOST_CHILDREN:,} children and can register no more.")


def open_descendants(registry: Registry, ancestor: str) -> list[str]:
    """Every descendant that has not ended, parents before their children.

    Includes descendants of ended jobs: a job may end before the jobs that it registered.
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
