"""The conversation that a job continues: which session of the agent, and whether this host still has it."""

from __future__ import annotations

import glob
import os
import re

from mam.agent_table import agent_kind
from mam.errors import ConversationGone
from mam.jobs.continuation import conversation_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def continued_session(job: Job, directory: str) -> str | None:
    """The agent's name of the conversation that the job continues, if it can be resumed in this directory. Records are
    untrusted, and the name becomes an argument of a command line."""
    conversation = job.conversation or {}
    is_here = conversation.get("host") == os.uname().nodename and conversation.get("place") == directory
    session = conversation.get("session") if is_here and conversation.get("agent") == job.agent else None
    return session if isinstance(session, str) and _SESSION.fullmatch(session) else None


def check_conversation(job: Job, directory: str) -> None:
    """Called before anything runs. Raises ConversationGone if a coding agent could not resume the conversation."""
    if job.continues is None or not agent_kind(job.agent).is_coding_agent:
        return
    session = continued_session(job, directory)
    if session is None:
        conversation = job.conversation or {}
        where = conversation.get("place") if conversation.get("session") else None
        why = f"it was held in {where}" if where else f"job {job.continues} ended before it began one"
        raise ConversationGone(job=job.job_id, why=why, retry=job.continues[:8])
    check_session_file(job.job_id, job.agent, session, job.continues[:8])


def check_can_resume_here(job: Job) -> None:
    """For the command that continues `job`: if its conversation is on this host, its file must be here too."""
    conversation: Json = conversation_of(job) or {}
    session = conversation.get("session")
    if conversation.get("host") == os.uname().nodename and isinstance(session, str) and _SESSION.fullmatch(session):
        check_session_file(job.job_id, job.agent, session, job.job_id[:8])


def check_session_file(job_id: str, agent: str, session: str, retry: str) -> None:
    """Some agents keep a file for each conversation. Of the others, only the agent itself can tell."""
    kind = agent_kind(agent)
    if not kind.transcripts:
        return
    folder = os.path.join(glob.escape(kind.home()), os.path.dirname(kind.transcripts))
    if next(glob.iglob(os.path.join(folder, f"*{session}*"), recursive=True), None) is None:
        why = f"{kind.home()} has no file of conversation {session}"
        raise ConversationGone(job=job_id, why=why, retry=retry)
