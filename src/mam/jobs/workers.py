"""What a store keeps about each worker process, and which worker holds and serves what. Pure.

A worker renews its entry while it lives. The jobs that it holds are in the jobs themselves.
"""

from __future__ import annotations

from mam.jobs.continuation import bound_host
from mam.jobs.lease import Lease
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.record import Job, Json
    from mam.util.clock import Moment

SESSION_LABEL = "tmux:"
"""Begins the label of a live session."""
DRAIN, STOP = "drain", "stop"
"""What a person may ask of a worker: to finish its running jobs and exit, or to release them and exit."""


class WorkerEntry(Frozen):
    """One worker process."""

    name: str
    """`user@host:pid`, also if its claims have another owner."""
    owner: str
    """The owner of its claims."""
    host: str
    pid: int
    labels: tuple[str, ...]
    agents: tuple[str, ...]
    """The kinds of agents that it can run."""
    concurrency: int
    job_id: str | None
    """The only job that it serves; None for all jobs of its labels."""
    version: str
    started_at: str
    seen_at: str
    lease: Lease
    asked: str | None = None
    """DRAIN or STOP, if a person asked; the store keeps it beside the entry."""

    def is_live(self, now: Moment) -> bool:
        return not self.lease.expired(now)

    def serves(self, job: Job) -> bool:
        """Whether it would claim this job. A worker that was asked to exit claims no more."""
        is_mine = self.job_id in (None, job.job_id) and bound_host(job) in ("", self.host)
        return self.asked is None and is_mine and job.agent_session in self.labels

    def is_able(self, job: Job) -> bool:
        """Whether it can run the job's agent. A live session takes every job of its own label."""
        return job.agent in self.agents or job.agent_session.startswith(SESSION_LABEL)

    def to_json(self) -> Json:
        """As a store keeps it, without what was asked."""
        fields = {name: value for name, value in self.as_dict().items() if name != "asked"}
        return {**fields, "lease": self.lease.as_dict()}


def parse_worker(fields: Json, asked: str | None) -> WorkerEntry:
    """Ignores fields of a newer mam."""
    known = {name: value for name, value in fields.items() if name in WorkerEntry.field_names}
    known |= {"labels": tuple(fields["labels"]), "agents": tuple(fields["agents"]), "lease": Lease(**fields["lease"])}
    return WorkerEntry(**{**known, "asked": asked})


class Holder(Frozen):
    """A worker with the jobs that it holds, or the owner of claims that no live worker has, such as a `pick` loop."""

    owner: str
    worker: WorkerEntry | None
    jobs: tuple[Job, ...]
    """Oldest claim first."""


def holders(live: Iterable[WorkerEntry], running: Iterable[Job]) -> list[Holder]:
    """Workers in the order of their names, then other owners. Workers that share an owner show the jobs of both."""
    held: dict[str, list[Job]] = {}
    for job in sorted(running, key=lambda job: (job.claimed_at or "", job.number)):
        held.setdefault(job.owner or "", []).append(job)
    workers = sorted(live, key=lambda worker: worker.name)
    of_workers = [
        Holder(owner=worker.owner, worker=worker, jobs=tuple(held.get(worker.owner, ()))) for worker in workers
    ]
    known = {worker.owner for worker in workers}
    others = [Holder(owner=owner, worker=None, jobs=tuple(held[owner])) for owner in sorted(held.keys() - known)]
    return of_workers + others


STATES = {None: "live", DRAIN: "draining", STOP: "stopping"}
"""What was asked of a worker, and what that makes it."""


def labels_held(holder: Holder) -> list[str]:
    return sorted({job.agent_session for job in holder.jobs})


def holder_json(holder: Holder) -> Json:
    worker = holder.worker
    jobs = [{"job_id": job.job_id, "label": job.agent_session, "since": job.claimed_at} for job in holder.jobs]
    if worker is None:
        return {"worker": None, "owner": holder.owner, "state": None, "labels": labels_held(holder), "holds": jobs}
    fields = {name: value for name, value in worker.to_json().items() if name not in ("name", "lease")}
    until = worker.lease.expires_at
    return {"worker": worker.name, "state": STATES[worker.asked], **fields, "expires_at": until, "holds": jobs}
