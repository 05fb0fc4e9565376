"""A job in the fields and states of prompt-valet."""

from __future__ import annotations

import os

from mam.inbox.names import INBOX, Target
from mam.jobs.status import Status
from mam.serve.valet.targets import inbox_root
from mam.util.clock import parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.config.settings import Config
    from mam.jobs.record import Job, Json

QUEUED, RUNNING, SUCCEEDED, FAILED, ABORTED = "queued", "running", "succeeded", "failed", "aborted"
STATE_OF = {
    Status.PENDING: QUEUED, Status.WAITING: QUEUED, Status.RUNNING: RUNNING, Status.COMPLETED: SUCCEEDED,
    Status.ERROR: FAILED, Status.CANCELLED: ABORTED,
}  # fmt: skip
_STALLED_SECONDS = 60


def target_of(job: Job) -> Target | None:
    """The repository that the job works on; None for a job of another kind, which these routes do not show."""
    if job.inbox is not None:
        return _target(job.inbox.get("owner"), job.inbox.get("repo"), job.inbox.get("branch"))
    if job.repository is None:
        return None
    owner, _, repo = str(job.repository.get("name")).rpartition("/")
    return _target(owner, repo, job.repository.get("branch"))


def _target(owner: object, repo: object, branch: object) -> Target | None:
    """A record may come from another program."""
    if isinstance(owner, str) and isinstance(repo, str) and isinstance(branch, str):
        return Target(owner=owner, repo=repo, branch=branch)
    return None


def valet_json(job: Job, target: Target, config: Config, now_ms: int) -> Json:
    run = job.run or {}
    rel = file_of(job, target)
    root = inbox_root(config)
    return {
        "job_id": job.job_id, "git_owner": target.owner, "repo_name": target.repo, "branch_name": target.branch,
        "inbox_file": rel if root is None else os.path.join(root, INBOX, rel), "inbox_rel": rel,
        "state": STATE_OF[job.status], "created_at": job.created_at, "updated_at": job.updated_at,
        "started_at": job.claimed_at, "heartbeat_at": job.heard_at, "finished_at": job.ended_at, "log_path": None,
        "exit_code": run.get("exit_code"), "failure_reason": job.reason,
        "stalled": is_stalled(job, now_ms), "age_seconds": _age(job, now_ms),
    }  # fmt: skip


def file_of(job: Job, target: Target) -> str:
    """The path of the job's prompt file, relative to the inbox."""
    name = (job.inbox or {}).get("file")
    if isinstance(name, str):
        return name
    return os.path.join(target.path, f"{job.job_id}.prompt.md")


def is_stalled(job: Job, now_ms: int) -> bool:
    """Whether its worker gave no sign of life for a minute, or for as long as its lease if that is longer."""
    if job.status is not Status.RUNNING or job.heard_at is None:
        return False
    limit = max(_STALLED_SECONDS, 0 if job.lease is None else job.lease.seconds)
    return now_ms - parse_time(job.heard_at) > limit * 1000


def _age(job: Job, now_ms: int) -> float:
    return max(0.0, (now_ms - parse_time(job.created_at)) / 1000)
