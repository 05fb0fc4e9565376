"""`ask`: a question to a person. Inside a job it is a question of this job; elsewhere it is a job for a person, which
`mam questions` lists and `mam answer` answers too."""

from __future__ import annotations

from mam.errors import BadInput, Refused, UnknownJob
from mam.jobs.draft import HUMAN
from mam.mcp.outcome import Parked
from mam.mcp.tool import Call, Tool, tool_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.question import Draft
    from mam.jobs.record import Job
    from mam.mcp.messages import Json
    from mam.questions import Asked

SECONDS = 50


def run(call: Call) -> Json | Parked:
    call.service.check_may_write()
    known = call.arguments.get("id")
    if call.service.caller.own_job is None and "." not in (known or ""):
        return _ask_with_job(call, known)
    return _ask(call, known)


def _ask(call: Call, known: str | None) -> Parked:
    from mam.mcp.asking import draft_of

    backend = call.service.backend
    asked = backend.ask(draft_of(call.arguments)) if known is None else backend.question(known)

    def check(is_over: bool) -> Json | None:
        now = backend.question(asked.id)
        return tool_result(_state(now)) if is_over or not now.question.is_open else None

    return Parked(jobs=frozenset([asked.job.job_id]), seconds=SECONDS, check=check)


def _ask_with_job(call: Call, known: str | None) -> Parked:
    from mam.mcp.asking import draft_of
    from mam.mcp.forms import answer_job, form_for_person

    backend = call.service.backend
    choices: tuple[str, ...] = ()
    if known is not None:
        job_id = _job_for_person(call, known)
    elif (answered := _answered_job(call)) is not None:
        job_id = answered.job_id
        answer_job(call.service, call.client, answered, call.responses[job_id])
    else:
        if "deadline" in call.arguments or "default" in call.arguments:
            raise BadInput(why="outside of a job, a question has no deadline and no default; omit both")
        draft = draft_of(call.arguments)
        choices = draft.choices
        job_id = backend.register(_prompt(draft), HUMAN, {}).job.job_id

    def check(is_over: bool) -> Json | None:
        job = backend.get(job_id)
        if job.status.ended:
            return tool_result(_state_of_job(job))
        forms = {} if job_id in call.responses else form_for_person(call.service, call.client, job, choices)
        if forms:
            return {"resultType": "input_required", "inputRequests": forms}
        return tool_result(_state_of_job(job)) if is_over else None

    return Parked(jobs=frozenset([job_id]), seconds=SECONDS, check=check)


def _job_for_person(call: Call, name: str) -> str:
    job = call.service.backend.get(name)
    if job.agent != HUMAN:
        raise Refused(why=f"Job {job.job_id} is not for a person and asks nothing; call wait(ids=[{job.job_id!r}]).")
    return job.job_id


def _prompt(draft: Draft) -> str:
    return f"{draft.text}\n\nAnswer with one of: {', '.join(draft.choices)}" if draft.choices else draft.text


def _answered_job(call: Call) -> Job | None:
    """The job of an earlier try of this call, which the response of the user names: it asks the same."""
    from mam.mcp.asking import draft_of

    for job_id in call.responses:
        try:
            job = call.service.backend.get_exact(job_id)
        except UnknownJob:
            continue
        if job.agent == HUMAN and job.prompt == _prompt(draft_of(call.arguments)):
            return job
    return None


def _state_of_job(job: Job) -> Json:
    from mam.jobs.status import COMPLETED

    if not job.status.ended:
        return {"id": job.job_id, "state": "open", "next": _wait_on(job.job_id)}
    if job.status is COMPLETED:
        return {"id": job.job_id, "state": "answered", "answer": job.result}
    return {"id": job.job_id, "state": "withdrawn", "answer": None, "reason": job.reason}


def _state(asked: Asked) -> Json:
    question = asked.question
    found: Json = {"id": asked.id, "state": question.state}
    if question.is_open:
        return {**found, "next": _wait_on(asked.id)}
    return {**found, "answer": question.answer, "decided": question.decided, "reason": question.reason}


def _wait_on(name: str) -> str:
    return f"ask(question='', id={name!r}) goes on waiting"


TOOL = Tool(
    name="ask",
    description="Ask a person a question and wait up to 50 s for the answer; call it again with the id to wait on.",
    properties={
        "question": {"type": "string"},
        "choices": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
        "default": {"type": "string", "description": "The answer after the deadline"},
        "deadline": {"type": "number", "minimum": 1, "maximum": 2_592_000, "description": "Seconds"},
        "id": {"type": "string"},
    },
    required=("question",),
    run=run,
    writes=True,
)
