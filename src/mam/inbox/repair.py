"""Repair the mirror from the registry on start, and delete what is older than the user wants to keep."""

from __future__ import annotations

import contextlib
import os

from mam.errors import MamError, UnknownJob
from mam.inbox.ledger import OPEN, LedgerRow
from mam.inbox.mirror import FINAL, SUCCEEDED, OutcomePaths
from mam.inbox.names import Target, check_branch, check_name, parse_target
from mam.inbox.tree import PROCESSED, temporary_name
from mam.jobs.status import ENDED, Status
from mam.stores.port import Query
from mam.util.clock import parse_time
from mam.work.job_dir import remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.inbox.mirror import Mirror
    from mam.inbox.settings import Settings
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.stores.port import Store

FILES = ("job.json", "state")
_DAY_MS = 86_400_000


def repair(mirror: Mirror, jobs_root: str, root: str, registry: Registry, open_rows: dict[str, LedgerRow]) -> list[str]:
    """Repair every job of the mirror; returns what could not be repaired."""
    problems = []
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(jobs_root):
            if name.startswith(temporary_name("")):
                remove_tree(os.path.join(jobs_root, name))
    for job_id in {*_ids(jobs_root), *open_rows}:
        _remove_temporaries(os.path.join(jobs_root, job_id))
        row = open_rows.get(job_id)
        if row is None and mirror.is_final(job_id):
            continue
        try:
            job = registry.get_exact(job_id)
            row = row or row_from_job(job)
            if row is not None:
                mirror.write(job, row, OutcomePaths(processed=processed_path(root, row)))
        except (MamError, OSError) as error:
            if not (isinstance(error, UnknownJob) and _waits_for_adoption(mirror, job_id)):
                problems.append(f"{os.path.join(jobs_root, job_id)}: {error}")
    return problems


def prune(mirror: Mirror, jobs_root: str, root: str, now_ms: int, keep_days: int) -> int:
    """Delete old ended jobs from the mirror and `processed`; returns how many. The registry and `finished` are not
    changed."""
    count = 0
    for job_id in list(_ids(jobs_root)) if keep_days else ():
        record = mirror.read(job_id)
        if record is None or record["state"] not in (SUCCEEDED, FINAL):
            continue
        if now_ms - parse_time(record["updated_at"]) < keep_days * _DAY_MS:
            continue
        target = Target(owner=record["git_owner"], repo=record["repo_name"], branch=record["branch_name"])
        with contextlib.suppress(MamError, OSError):
            check_branch(target.branch)
            folder = os.path.join(root, PROCESSED, target.path)
            if os.path.realpath(folder) == folder:
                remove_tree(os.path.join(folder, job_id))
            remove_tree(os.path.join(jobs_root, job_id))
            count += 1
    return count


def recover_rows(store: Store, settings: Settings) -> Iterator[LedgerRow]:
    """The rows of a lost ledger, from the registry: the jobs of this inbox that have not ended."""
    seen = set()
    for job in store.select(Query(statuses=frozenset(Status) - ENDED)):
        row = row_from_job(job)
        if row is None or (job.inbox or {}).get("root") != settings.root or row.rel in seen:
            continue
        with contextlib.suppress(MamError):
            check_name(row.rel)
            target = parse_target(row.rel, settings.mode, settings.owner, settings.here)
            seen.add(row.rel)
            yield row.replace(state=OPEN, **target.as_dict())


def row_from_job(job: Job) -> LedgerRow | None:
    """The row of a job, from the file that the registry recorded."""
    inbox = job.inbox or {}
    words = [inbox.get(name) for name in ("file", "owner", "repo", "branch")]
    if not all(isinstance(word, str) and word for word in words):
        return None
    rel, owner, repo, branch = map(str, words)
    return LedgerRow(job_id=job.job_id, rel=rel, inode=0, owner=owner, repo=repo, branch=branch)


def processed_path(root: str, row: LedgerRow) -> str:
    return os.path.join(root, PROCESSED, row.target.path, row.job_id, "prompt.md")


def _waits_for_adoption(mirror: Mirror, job_id: str) -> bool:
    """A job of the older queue whose claimed file is there: the first scan takes it over under this id."""
    record = mirror.read(job_id)
    return record is not None and os.path.isfile(record["inbox_file"])


def _ids(jobs_root: str) -> Iterator[str]:
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(jobs_root):
            if len(name) == 32 and set(name) <= set("0123456789abcdef"):
                yield name


def _remove_temporaries(folder: str) -> None:
    """Remove what a killed writer left."""
    for name in FILES:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, temporary_name(name)))
