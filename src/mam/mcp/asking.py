"""Puts a question to a person: for the caller's own job, otherwise as a job for a person."""

from __future__ import annotations

from mam.errors import BadInput, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.question import Draft
    from mam.mcp.caller import Service
    from mam.mcp.messages import Json
    from mam.mcp.tool import Call
    from mam.questions import Asked


def ask(call: Call) -> Asked:
    draft = _draft(call.arguments)
    if call.service.caller.own_job is not None:
        return _ask_for_own_job(call.service, draft)
    return _ask_as_job(call.service, draft)


def _draft(arguments: Json) -> Draft:
    from mam.jobs.question import DENY, QUESTION, Draft, check_draft

    draft = Draft(
        kind=QUESTION, text=arguments["question"], choices=tuple(arguments.get("choices", ())),
        default=arguments.get("default", DENY), deadline_seconds=arguments.get("deadline"),
    )  # fmt: skip
    return check_draft(draft)


def _ask_for_own_job(service: Service, draft: Draft) -> Asked:
    """Under the claim that the worker gave to this job."""
    from mam import questions
    from mam.machine.agent_tree import variable_of_agent

    attempt, claim_id = variable_of_agent("MAM_ATTEMPT"), variable_of_agent("MAM_CLAIM")
    if attempt is None or not attempt.isascii() or not attempt.isdigit():
        raise BadInput(why="MAM_ATTEMPT, which names the claim of this job, is not set")
    own = service.caller.own_job or ""
    return questions.ask(service.registry, own, draft, attempt=int(attempt), claim_id=claim_id)


def _ask_as_job(_service: Service, _draft: Draft) -> Asked:
    raise Refused(why="Outside of a job, ask the user in your conversation, or submit a job for the agent human.")
