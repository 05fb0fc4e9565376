"""What keeps a pending job from being claimed: an exclusive key in use, and unfinished dependencies.

A claim considers only pending jobs that are not blocked. Of the pending jobs that share an exclusive key, only the
first of each label and agent is not blocked (another agent may be paused), so a thousand jobs with one key cost other
claims nothing. The end of a job only marks its dependents as unsettled; sweeps settle them later.
"""

from __future__ import annotations

from mam.jobs.record import DEPENDENCY
from mam.jobs.status import PENDING, RUNNING
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.jobs.record import Job

    RunQuery = Callable[..., list[Any]]
    """Runs a named query in the open transaction."""


class DependentsPage(Frozen):
    """Some of the jobs that depend on one that has ended."""

    root: str
    ended: str
    dependents: list[str]
    upto: int
    last: bool


class Blocking:
    def __init__(self, ask: RunQuery) -> None:
        self._run_query = ask

    def after_write(self, before: Job | None, job: Job, root: str | None, *, awaited: bool) -> None:
        """Called after every write of a row, in the same transaction. A claim does not touch the others of its key: the
        unique index of running keys decides, and the end of the claim rebalances."""
        claimed = before is not None and before.status is PENDING and job.status is RUNNING
        if job.exclusive is not None and not claimed:
            self.rebalance(job.exclusive)
        if job.after:
            self._update_dependencies(job)
        if job.status.ended and awaited:
            self._run_query("mark unsettled", job_id=job.job_id, root=root)

    def rebalance(self, key: str) -> None:
        """Blocks all pending jobs of the key but the first of each label and agent."""
        self._run_query("block key", key=key)
        self._run_query("unblock heads", key=key)

    def holder(self, key: str) -> str | None:
        rows = self._run_query("holder", key=key)
        return str(rows[0][0]) if rows else None

    def next_page(self, limit: int) -> DependentsPage | None:
        """The next dependents to settle; None when there are none."""
        rows = self._run_query("next unsettled")
        if not rows:
            return None
        root, ended, upto = rows[0]
        found = self._run_query("dependents", root=root, upto=upto, limit=limit)
        ids = [job_id for _number, job_id in found]
        return DependentsPage(
            root=root, ended=ended, dependents=ids, upto=found[-1][0] if found else upto, last=len(ids) < limit
        )

    def finish_page(self, page: DependentsPage) -> None:
        """Marks the page as settled, unless another job of the chain ended meanwhile (`ended` differs)."""
        if page.last:
            self._run_query("delete unsettled", root=page.root, ended=page.ended)
        else:
            self._run_query("save settled upto", root=page.root, ended=page.ended, upto=page.upto)

    def _update_dependencies(self, job: Job) -> None:
        if job.waiting_for != DEPENDENCY:
            self._run_query("delete dependencies", job_id=job.job_id)
            return
        for needed in job.after:
            self._run_query("insert dependency", job_id=job.job_id, number=job.number, needs=needed)
            self._run_query("mark awaited", job_id=needed)
