"""The overview of a job: why it is in its state, what came of it, what it cost, and what to do next. Pure."""

from __future__ import annotations

from mam.jobs.changed_files import changes_of as changed_files
from mam.jobs.continuation import conversation_of
from mam.jobs.question import open_questions
from mam.jobs.record import Job
from mam.jobs.status import CANCELLED, COMPLETED, ERROR, PENDING, RUNNING, WAITING, Status
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.activity import State
    from mam.jobs.record import Json


class Relative(Frozen):
    """Another job that this one is connected with."""

    relation: str
    """What the other is to this one: retry_of, retried_as, continues, continued_by, parent, child, after."""
    job_id: str
    status: Status | None = None
    """None if the job is gone."""


class Overview(Frozen):
    job: Job
    why: list[str]
    """The sentences of `mam explain`."""
    state: State
    chain: tuple[Relative, ...] = ()
    children: int = 0
    """All children; the chain holds the first ones."""

    def to_json(self) -> Json:
        job = self.job
        return {
            "job_id": job.job_id, "status": job.status, "agent": job.agent, "agent_session": job.agent_session,
            "prompt": job.prompt, "state": self.state.to_json(), "why": self.why, "result": job.result,
            "changes": changes_of(job), "checks": job.checks, "cost": cost_of(job), "seconds": seconds_of(job),
            "where": where(job),
            "chain": [relative.as_dict() for relative in self.chain], "children": self.children,
            "questions": [question.as_dict() for question in open_questions(job)],
            "seen": job.seen, "applied": job.applied, "next": [step.as_dict() for step in next_steps(self)],
        }  # fmt: skip


class NextStep(Frozen):
    command: str
    effect: str


def next_steps(overview: Overview) -> list[NextStep]:
    """What a person would type now, the most likely first."""
    job, short = overview.job, overview.job.job_id[:8]
    steps = {
        PENDING: [("worker --job", "runs it here, now"), ("edit", "changes it"), ("cancel", "cancels it")],
        WAITING: [("edit", "changes it"), ("cancel", "cancels it")],
        RUNNING: [("output --follow", "shows what it does"), ("wait", "waits for its end"), ("cancel", "cancels it")],
        COMPLETED: [("output", "shows what it did")],
        ERROR: [("output", "shows what it did"), ("retry", "registers it again"), ("seen", "notes that you looked")],
        CANCELLED: [("retry", "registers it again")],
    }[job.status]  # fmt: skip
    if job.status is RUNNING and job.agent == "human":
        steps = [("complete", "ends it as done"), ("fail --reason TEXT", "ends it in error")]
    changes = changed_files(job)
    if job.status.ended and changes is not None and changes.files:
        can_apply = not changes.shared and job.applied is None
        steps = [("diff", "shows what it changed"), *([("apply", "applies it")] if can_apply else []), *steps]
    if job.status.ended and (conversation_of(job) or {}).get("session") is not None:
        steps = [*steps, ('continue "…"', "adds work to its conversation")]
    if job.result is not None and job.status.ended:
        steps = [("result", "prints the whole result"), *steps]
    if not job.attempt or "session" in (job.run or {}):  # the output of a live session is on its own screen
        steps = [step for step in steps if not step[0].startswith("output")]
    retried = any(relative.relation == "retried_as" for relative in overview.chain)
    if retried or job.seen is not None:
        steps = [step for step in steps if step[0] != "seen" and not (retried and step[0] == "retry")]
    answers = [
        NextStep(command=f"mam answer {short}.{question.number}", effect="answers its question")
        for question in open_questions(job)
    ]
    return answers + [NextStep(command=_command(words, short), effect=effect) for words, effect in steps]


def _command(words: str, short: str) -> str:
    verb, _, rest = words.partition(" ")
    return f"mam {verb} {rest} {short}" if rest == "--job" else f"mam {verb} {short} {rest}".rstrip()


def changes_of(job: Job) -> Json | None:
    """Where the changes of the job are, as its worker recorded them."""
    run = job.run or {}
    changes = run.get("changes")
    if isinstance(changes, dict):
        return dict(changes)
    branch = run.get("branch")
    return {"branch": branch} if isinstance(branch, str) else None


def cost_of(job: Job) -> Json | None:
    """Tokens and US dollars of the latest attempt; None if the agent reported neither."""
    agent = (job.run or {}).get("agent")
    if not isinstance(agent, dict) or not (agent.get("tokens") or agent.get("cost_usd") is not None):
        return None
    usd = agent.get("cost_usd")
    return {"usd": usd, "tokens": dict(agent.get("tokens") or {}), "from": agent.get("cost_from")}


def seconds_of(job: Job) -> float | None:
    """How long the latest attempt ran."""
    took = (job.run or {}).get("wall_seconds")
    return float(took) if isinstance(took, int | float) else None


def where(job: Job) -> Json:
    """The host and the directory, and the conversation of the agent."""
    run = job.run or {}
    agent = run.get("agent") if isinstance(run.get("agent"), dict) else {}
    return {
        "host": run.get("host") or job.origin_host, "directory": run.get("place") or job.workdir,
        "attempt": job.attempt, "owner": job.owner, "session": (agent or {}).get("session"),
        "version": (agent or {}).get("version"),
    }  # fmt: skip
