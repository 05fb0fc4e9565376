"""What a tool says about a job: its state, why it is in this state, and what came of it."""

from __future__ import annotations

from mam.jobs.changed_files import changes_of
from mam.jobs.question import open_questions, question_id
from mam.jobs.status import COMPLETED, in_words
from mam.mcp.untrusted import PART, QUOTED, untrusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.mcp.caller import Service
    from mam.mcp.messages import Json


def row(job: Job) -> Json:
    """A job in a list."""
    from mam.jobs.question import first_line

    found: Json = {"job_id": job.job_id, "status": job.status, "agent": job.agent, "label": job.agent_session,
                   "created_at": job.created_at, "prompt": first_line(job.prompt)}  # fmt: skip
    asking = open_questions(job)
    return {**found, "questions": len(asking)} if asking else found


def report(service: Service, job: Job, limit: int = PART) -> Json:
    """Why an open job does not end yet, or the outcome of an ended one."""
    found: Json = {"job_id": job.job_id, "status": job.status, "agent": job.agent, "label": job.agent_session}
    if not job.status.ended:
        return {**found, "why": why(service, job), **asked(job)}
    return {**found, **outcome(job, limit)}


def why(service: Service, job: Job) -> str:
    """The sentences of `mam explain`."""
    from mam.errors import MamError

    try:
        return " ".join(service.backend.why(job))
    except MamError:
        return f"It is {job.status}."


def asked(job: Job) -> Json:
    """The open questions, which only a person answers."""
    questions = [
        {"id": question_id(job.job_id, one.number), "kind": one.kind, "choices": list(one.choices),
         **untrusted(one.text, PART, "`mam questions` shows the rest")}
        for one in open_questions(job)
    ]  # fmt: skip
    return {"questions": questions} if questions else {}


def outcome(job: Job, limit: int, start: int = 0) -> Json:
    """The result, the artifacts and the changes of an ended job."""
    found: Json = {}
    if job.status is not COMPLETED:
        found |= {"reason": job.reason or in_words(job.status), "untrusted": QUOTED}
    if job.result is not None:
        pointer = f"result(job={job.job_id!r}, offset={{}})"
        found["result"] = untrusted(job.result, limit, pointer, start)
    if job.status is COMPLETED:
        found["checked"] = bool(job.checked)
    if job.expected_artifacts:
        found["artifacts"] = artifacts(job)
    changes = changes_of(job)
    if changes is not None and changes.files:
        found["changes"] = f"{changes.summary()}; the diff is mam://jobs/{job.job_id}/diff"
    return found


def artifacts(job: Job) -> list[str]:
    """The promised files; those that the worker found have their size."""
    sizes = {str(one.get("path")): one.get("size") for one in (job.checks or {}).get("artifacts") or ()}
    return [f"{path} ({sizes[path]} bytes)" if path in sizes else path for path in job.expected_artifacts]
