"""Checks that this host still has the conversation that a job continues, before anything runs."""

from __future__ import annotations

import glob
import os

from mam.agent_table import agent_kind
from mam.errors import ConversationGone
from mam.jobs.continuation import conversation_of
from mam.jobs.resuming import is_gone, resumable_conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json


def check_conversation(job: Job, directory: str) -> None:
    """Called before anything runs. Raises ConversationGone if a coding agent could not resume the conversation."""
    if job.continues is None or not agent_kind(job.agent).is_coding_agent:
        return
    session = resumable_conversation(job, os.uname().nodename, directory)
    if session is None:
        conversation = job.conversation or {}
        where = conversation.get("place") if conversation.get("session") else None
        why = f"job {job.continues} ended before it began one" if where is None else f"it was held in {where}"
        live = conversation.get("live")
        if isinstance(live, dict):
            why = f"it is in the live session {live.get('name')}, and a worker without it has claimed the job"
        why = f"{job.agent} no longer has it" if is_gone(job.run) else why
        raise ConversationGone(job=job.job_id, why=why, retry=job.continues[:8])
    check_session_file(job.job_id, job.agent, session, job.continues[:8])


def check_live_conversation(job: Job, session: Json) -> None:
    """The same for a live session, which a newer generation may have replaced."""
    live = (job.conversation or {}).get("live")
    if job.continues is None or not isinstance(live, dict):
        return
    if live.get("generation_id") != session["generation_id"]:
        why = f"the live session {live.get('name')} that had it was replaced"
        raise ConversationGone(job=job.job_id, why=why, retry=job.continues[:8])


def check_can_resume_here(job: Job) -> None:
    """For the command that continues `job`: if its conversation is on this host, its file must be here too."""
    conversation = conversation_of(job) or {}
    session = conversation.get("session")
    if conversation.get("host") == os.uname().nodename and isinstance(session, str):
        check_session_file(job.job_id, job.agent, session, job.job_id[:8])


def check_session_file(job_id: str, agent: str, session: str, retry: str) -> None:
    """Some agents keep a file for each conversation. Of the others, only the agent itself can tell."""
    kind = agent_kind(agent)
    if not kind.transcripts:
        return
    folder = os.path.join(glob.escape(kind.home()), os.path.dirname(kind.transcripts))
    if next(glob.iglob(os.path.join(folder, f"*{glob.escape(session)}*"), recursive=True), None) is None:
        why = f"{kind.home()} has no file of conversation {session}"
        raise ConversationGone(job=job_id, why=why, retry=retry)
