"""What stands between a job and its claim: an exclusive key in use, and jobs that have to end first.

A claim only sees jobs that are pending and not blocked. Of those that share an exclusive key, the first of each agent
of a label is free while nobody runs under the key (another's agent may be paused), and none is while somebody does; so
a thousand jobs behind one key cost a claim for others nothing. The end of a job only notes that those who come after it
are to be looked at; sweeps do that later.
"""

from __future__ import annotations

from mam.frozen import Frozen
from mam.jobs.record import DEPENDENCY
from mam.jobs.status import PENDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.jobs.record import Job

    Ask = Callable[..., list[Any]]
    """Runs a named query of the transaction that is open."""

FREE, BLOCKED, UNREADABLE = 0, 1, 2


class Page(Frozen):
    """Some of those that come after a job that has ended."""

    root: str
    ended: str
    dependents: list[str]
    upto: int
    last: bool


class Gate:
    def __init__(self, ask: Ask, tell: Ask | None = None) -> None:
        """`tell` is for what answers nothing: where a server is asked, that can wait until the act is over."""
        self._ask = ask
        self._tell = tell or ask

    def written(self, job: Job, root: str | None) -> None:
        """After every write of a job's row, in the same transaction; doing it twice changes nothing."""
        if job.exclusive is not None:
            self.rebalance(job.exclusive)
        if job.after:
            self._depend(job)
        if job.status.ended:
            self._tell("ended", job_id=job.job_id, root=root)

    def removed(self, job_id: str, root: str | None, exclusive: str | None) -> None:
        """The row is gone: those that come after it are to be told, as of any other end."""
        if exclusive is not None:
            self.rebalance(exclusive)
        self._tell("needs no more", job_id=job_id)
        self._tell("ended", job_id=job_id, root=root)

    def rebalance(self, key: str) -> None:
        self._tell("block key" if self.holder(key) else "free heads", key=key)

    def holder(self, key: str) -> str | None:
        rows = self._ask("holder", key=key)
        return str(rows[0][0]) if rows else None

    def newest(self, job_id: str) -> str:
        """The last retry of a job; the job itself when there is none."""
        rows = self._ask("newest", job_id=job_id)
        return str(rows[0][0]) if rows else job_id

    def page(self, limit: int) -> Page | None:
        """The next ones to look at, None when nobody waits for a look."""
        rows = self._ask("unsettled")
        if not rows:
            return None
        root, ended, upto = rows[0]
        found = self._ask("dependents", root=root, upto=upto, limit=limit)
        ids = [job_id for _number, job_id in found]
        return Page(root=root, ended=ended, dependents=ids, upto=found[-1][0] if found else upto, last=len(ids) < limit)

    def turn(self, page: Page) -> None:
        """They have been looked at. Another end meanwhile has another stamp, and begins anew."""
        if page.last:
            self._tell("settled", root=page.root, ended=page.ended)
        else:
            self._tell("settled upto", root=page.root, ended=page.ended, upto=page.upto)

    def _depend(self, job: Job) -> None:
        if job.waiting_for != DEPENDENCY:
            self._tell("needs no more", job_id=job.job_id)
            return
        for needed in job.after:
            self._tell("needs", job_id=job.job_id, number=job.number, needs=needed)


def stands_alone(job: Job) -> bool:
    """Most have no key and come after nobody."""
    return job.exclusive is None and not job.after


def blocked_at_first(job: Job) -> int:
    """Of a row as it is written, before the keys are weighed against each other."""
    return BLOCKED if job.exclusive is not None and job.status is PENDING else FREE
