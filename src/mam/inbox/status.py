"""What is in an inbox right now, from its tree, its ledger and the registry; nothing is changed by looking."""

from __future__ import annotations

import os

from mam.errors import BadInput, BadRecord, UnknownJob
from mam.inbox.ledger import SHOWN, Ledger
from mam.inbox.names import beside
from mam.inbox.tree import QUEUE, Tree
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.inbox.ledger import Claim
    from mam.jobs.record import Job
    from mam.registry import Registry

WAITING, LEFT, REFUSED, GONE = "waiting", "left", "refused", "gone"
"""Not taken yet; cannot be taken, an error stands beside it; did not become a job; its job is not in the registry."""


class File(Frozen):
    """One dropped file."""

    job_id: str | None = None
    status: str
    agent: str | None = None
    file: str
    """Where it is, or what tells of it, below the inbox."""


def files_in(root: str, registry: Registry) -> list[File]:
    tree = Tree(root)
    if not os.path.isdir(tree.inbox):
        raise BadInput(
            why=f"there is no inbox at {tree.inbox}; `mam inbox watch` makes one, or name its root with --root"
        )
    look = tree.look()
    left = [beside(seen.rel, "error") for seen in look.prompts]
    dropped = [
        File(status=LEFT if tree.signature(error) is not None else WAITING, file=seen.rel)
        for seen, error in zip(look.prompts, left, strict=True)
    ]
    claims = Ledger.for_reading(os.path.join(root, QUEUE))
    return dropped + [_claimed(claim, registry) for claim in claims]


def _claimed(claim: Claim, registry: Registry) -> File:
    shown = claim.outcome if claim.state == SHOWN else beside(claim.rel, "running")
    if claim.refused:
        return File(job_id=None, status=REFUSED, file=shown)
    job = _job(claim, registry)
    if job is None:
        return File(job_id=claim.job_id, status=GONE if claim.state == SHOWN else WAITING, file=shown)
    return File(job_id=claim.job_id, status=str(job.status), agent=job.agent, file=shown)


def _job(claim: Claim, registry: Registry) -> Job | None:
    try:
        return registry.store.get(claim.job_id)
    except (UnknownJob, BadRecord):
        return None
