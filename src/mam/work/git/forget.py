"""Removes `refs/mam/JOB` of jobs that leave the registry, so that git can remove the objects that only these refs keep.

| step | state if the process is killed before the next step |
|---|---|
| 1. the refs of a batch of jobs are removed | the jobs are still in the registry, and the next prune takes them |
| 2. the jobs move to the archive | |

In the other order, a kill would leave refs that no later prune finds.
"""

from __future__ import annotations

import os

from mam.jobs.changed_files import changes_of
from mam.work.git.changes import REFS
from mam.work.git.command import LONG_SECONDS, GitFailed, at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.record import Job

_LISTED_LIMIT = 1 << 28


def forget_changes(jobs: Iterable[Job]) -> None:
    """Removes the refs on this host. A repository that is gone, or in which git fails, must not stop the caller."""
    host = os.uname().nodename
    of_repositories: dict[str, set[str]] = {}
    for job in jobs:
        changes = changes_of(job)
        if changes is not None and (job.run or {}).get("host") == host:
            of_repositories.setdefault(changes.repository, set()).add(job.job_id)
    for repository, job_ids in of_repositories.items():
        try:
            _remove_refs(repository, job_ids)
        except (GitFailed, OSError):
            continue


def _remove_refs(repository: str, job_ids: set[str]) -> None:
    if not os.path.isdir(repository):
        return
    git = at(repository)
    listed = git.text("for-each-ref", "--format=%(refname)", REFS, limit=_LISTED_LIMIT, seconds=LONG_SECONDS)
    gone = [name for name in listed.splitlines() if name.removeprefix(REFS).partition("/")[0] in job_ids]
    if gone:
        given = "".join(f"delete {name}\n" for name in gone)
        git.text("update-ref", "--no-deref", "--stdin", given=given, seconds=LONG_SECONDS)
