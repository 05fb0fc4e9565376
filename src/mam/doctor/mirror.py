"""Check that the inbox's mirror, which other programs read, matches the registry."""

from __future__ import annotations

import os

from mam.doctor.finding import count, fine, first_few, wrong
from mam.errors import BadRecord, UnknownJob
from mam.inbox.mirror import Mirror, mirror_state
from mam.inbox.repair import repair
from mam.inbox.settings import mirror_location
from mam.jobs.input_rules import is_job_id
from mam.registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding
    from mam.stores.port import Store


def check(context: Context) -> Iterator[Finding]:
    places, store = mirror_location(context.config), context.try_open()
    if places is None or store is None or not os.path.isdir(places[1]):
        return
    root, jobs_root = places
    mirror = Mirror(jobs_root, root)
    drifted = [job_id for job_id in os.listdir(jobs_root) if is_job_id(job_id) and _drifts(mirror, store, job_id)]
    if drifted:
        yield wrong(
            f"the mirror in {jobs_root} differs from the registry for {count(len(drifted), 'job')}:"
            f" {first_few(sorted(drifted))}",
            "programs that read it see a wrong state",
            fix=lambda: repair(mirror, jobs_root, root, Registry(store), {}),
        )
    else:
        yield fine("the inbox's mirror matches the registry")


def _drifts(mirror: Mirror, store: Store, job_id: str) -> bool:
    """A job that only the mirror contains is no difference: it may belong to another registry or program."""
    try:
        job = store.get(job_id)
    except (BadRecord, UnknownJob):
        return False
    return mirror.consistent_state(job_id) != mirror_state(job)
