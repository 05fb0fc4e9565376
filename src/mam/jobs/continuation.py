"""Continuations: a new job adds work to the conversation of an earlier one, in the same workspace.

Jobs that continue each other form a chain. Each has at most one continuation, so a chain has one end. A continuation
starts when every earlier job of its chain has ended, with any outcome. Only the host that has the conversation can
claim it, and the jobs of a chain share an exclusive key.
"""

from __future__ import annotations

from mam.errors import Refused
from mam.jobs.resuming import conversation_id, is_gone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mam.jobs.record import Job, Json

KEY_PREFIX = "conversation/"
_INHERITED = (
    "timeout_sec", "idle_timeout_sec", "priority", "max_retries", "workdir", "origin_host", "parent_id", "depth",
    "workspace", "permissions", "on_idle", "repository", "may_ask",
    "registered_by",
    "retry_on_exit", "model",
)  # fmt: skip
_KEPT = ("broker", "max_losses")


def draft_continuation(chain: Sequence[Job], job_id: str, prompt: str, **choices: object) -> Job:
    """A job that continues the last of `chain`, which holds the jobs that it must wait for, in their order. It inherits
    neither artifacts nor validation; `choices` are parameters of `draft_job`."""
    from mam.jobs.draft import draft_job

    last = chain[-1]
    inherited = {name: getattr(last, name) for name in _INHERITED}
    order = {
        "after": [job.job_id for job in chain if not job.status.ended],
        "on_dependency_failure": "run",
        "exclusive": last.exclusive or conversation_key(last),
        "continues": last.job_id,
    }
    whole = {**inherited, **choices, **order, "agent": last.agent, "label": last.agent_session}
    draft = draft_job(job_id=job_id, prompt=prompt, **whole)
    kept = {name: getattr(last, name) for name in _KEPT}
    return draft.replace(**{**kept, "directory_of": last.workspace_id, **_latest_conversation(chain)})


def check_can_be_continued(job: Job, *, keeps_conversations: bool) -> None:
    """Raises Refused for an ended job of a coding agent whose conversation never began."""
    conversation = conversation_of(job) or {}
    is_known = bool(conversation.get("session") or conversation.get("live"))
    if job.status.ended and keeps_conversations and not is_known:
        why = f"`mam retry {job.job_id[:8]}` starts it from the beginning"
        raise Refused(why=f"Job {job.job_id} is {job.status} and has no conversation to continue; {why}.")


def taken_up(job: Job, needed: Mapping[str, Job | None]) -> Json:
    """The fields that a continuation takes from the earlier jobs of its chain when they have ended. A retry replaces
    the job that it retries."""
    if job.continues is None:
        return {}
    return _latest_conversation([found for name in job.after if (found := needed.get(name)) is not None])


def _latest_conversation(chain: Sequence[Job]) -> Json:
    for job in reversed(chain):
        conversation = conversation_of(job)
        if conversation is not None:
            return {"conversation": conversation, "directory_of": job.workspace_id}
    return {}


def conversation_of(job: Job) -> Json | None:
    """Where the conversation of a job is: host, directory, branch, agent and the agent's id of it, or the live session.
    A job that ended before its own began has that of the job that it continues."""
    run = job.run or {}
    host = run.get("host")
    if not (isinstance(host, str) and host):
        return job.conversation
    live, session = run.get("session"), conversation_id(run)
    if session is None and live is None and isinstance(run.get("agent"), dict):
        return None if is_gone(run) else job.conversation
    found = {"job": job.job_id, "host": host, "agent": job.agent, "session": session, "place": run.get("place")}
    return {**found, "branch": run.get("branch"), "live": live if isinstance(live, dict) else None}


def bound_host(job: Job) -> str:
    """The only host that can claim the job; empty for any."""
    host = (job.conversation or {}).get("host")
    return host if isinstance(host, str) else ""


def conversation_key(job: Job) -> str:
    return f"{KEY_PREFIX}{job.workspace_id}"


def is_conversation_key(key: str | None) -> bool:
    """Whether mam chose this exclusive key."""
    return key is not None and key.startswith(KEY_PREFIX)
