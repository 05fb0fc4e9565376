"""List the files of an inbox from its tree, its ledger and the registry, without changing anything."""

from __future__ import annotations

import os

from mam.errors import BadInput, BadRecord, UnknownJob
from mam.inbox.ledger import SHOWN, Ledger
from mam.inbox.names import path_with_state
from mam.inbox.tree import QUEUE, Tree
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.inbox.ledger import LedgerRow
    from mam.jobs.record import Job
    from mam.registry import Registry

WAITING, LEFT, REFUSED, GONE = "waiting", "left", "refused", "gone"
"""Not ingested yet; cannot be ingested, with an error file beside it; did not become a job; its job is not in the
registry."""


class DroppedFile(Frozen):
    """One dropped file."""

    job_id: str | None = None
    status: str
    agent: str | None = None
    file: str
    """The path of the file, or of its outcome, below the inbox."""


def list_files(root: str, registry: Registry) -> list[DroppedFile]:
    tree = Tree(root)
    if not os.path.isdir(tree.inbox):
        raise BadInput(
            why=f"there is no inbox at {tree.inbox}; `mam inbox watch` creates one, or name its root with --root"
        )
    scan = tree.scan()
    left = [path_with_state(file.rel, "error") for file in scan.prompts]
    dropped = [
        DroppedFile(status=LEFT if tree.stat(error) is not None else WAITING, file=file.rel)
        for file, error in zip(scan.prompts, left, strict=True)
    ]
    rows = Ledger.read_rows(os.path.join(root, QUEUE))
    return dropped + [_claimed(row, registry) for row in rows]


def _claimed(row: LedgerRow, registry: Registry) -> DroppedFile:
    shown = row.outcome if row.state == SHOWN else path_with_state(row.rel, "running")
    if row.refused:
        return DroppedFile(job_id=None, status=REFUSED, file=shown)
    job = _job(row, registry)
    if job is None:
        return DroppedFile(job_id=row.job_id, status=GONE if row.state == SHOWN else WAITING, file=shown)
    return DroppedFile(job_id=row.job_id, status=str(job.status), agent=job.agent, file=shown)


def _job(row: LedgerRow, registry: Registry) -> Job | None:
    try:
        return registry.store.get(row.job_id)
    except (UnknownJob, BadRecord):
        return None
