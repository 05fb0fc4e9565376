"""Which conversation an attempt resumes, from the `run` of the record. Pure.

An attempt that resumes a conversation may end before the agent has printed the id again. The next attempt then resumes
the same conversation, unless the agent has reported that it does not have it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json

_KEPT = ("name", "briefed", "limits")


def conversation_id(run: Json | None) -> str | None:
    """The agent's id of the conversation that the next attempt can resume."""
    agent = (run or {}).get("agent")
    if not isinstance(agent, dict) or is_gone(run):
        return None
    return _checked(agent.get("session") or agent.get("resumed"))


def _checked(session: object) -> str | None:
    """The id becomes an argument of a command line."""
    if not isinstance(session, str) or session.startswith("-"):
        return None
    return session if session.replace("-", "").replace("_", "").isalnum() else None


def resumable_conversation(job: Job, host: str, place: str) -> str | None:
    """The id of the conversation of the attempt before, if that ran on this host and in this directory, where agents
    look for it. Otherwise that of the conversation that the job continues."""
    run = job.run or {}
    is_here = run.get("host") == host and run.get("place") == place
    own = conversation_id(run) if is_here else None
    return (
        own if own is not None and run["agent"].get("name") == job.agent else continued_conversation(job, host, place)
    )


def continued_conversation(job: Job, host: str, place: str) -> str | None:
    """The id of the conversation that the job continues, unless an attempt of the job found that it is gone."""
    conversation = job.conversation or {}
    is_here = conversation.get("host") == host and conversation.get("place") == place
    if not is_here or conversation.get("agent") != job.agent or is_gone(job.run):
        return None
    return _checked(conversation.get("session"))


def is_gone(run: Json | None) -> bool:
    """Whether the agent reported that it does not have the conversation."""
    agent = (run or {}).get("agent")
    return isinstance(agent, dict) and bool(agent.get("gone"))


def has_brief(job: Job) -> bool:
    """Whether the conversation to resume contains the brief: the model has answered in it."""
    agent = (job.run or {}).get("agent")
    return isinstance(agent, dict) and agent.get("briefed") is True


def carried(job: Job, host: str) -> Json:
    """What an attempt that has not started its agent keeps in its `run`, so that the next one can still resume."""
    run = job.run or {}
    session = conversation_id(run)
    if session is None or run.get("host") != host:
        return {}
    kept = {name: run["agent"][name] for name in _KEPT if name in run["agent"]}
    return {"place": run.get("place"), "agent": {**kept, "resumed": session}}
