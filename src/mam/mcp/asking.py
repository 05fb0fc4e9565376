"""Puts a question to a person, and stores the answer of one."""

from __future__ import annotations

from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.question import Draft
    from mam.jobs.question_acts import Answer
    from mam.mcp.messages import Json
    from mam.questions import Asked
    from mam.registry import Registry


def draft_of(arguments: Json) -> Draft:
    from mam.jobs.question import DENY, QUESTION, Draft, check_draft

    draft = Draft(
        kind=QUESTION, text=arguments["question"], choices=tuple(arguments.get("choices", ())),
        default=arguments.get("default", DENY), deadline_seconds=arguments.get("deadline"),
    )  # fmt: skip
    return check_draft(draft)


def ask_for_own_job(registry: Registry, own: str, draft: Draft) -> Asked:
    """Under the claim that holds this job."""
    from mam import questions
    from mam.machine.agent_tree import variable_of_agent

    attempt, claim_id = variable_of_agent("MAM_ATTEMPT"), variable_of_agent("MAM_CLAIM")
    if attempt is None or not attempt.isascii() or not attempt.isdigit():
        raise BadInput(why="MAM_ATTEMPT, which names the claim of this job, is not set")
    return questions.ask(registry, own, draft, attempt=int(attempt), claim_id=claim_id)


def answer_to(asked: Asked, text: str, by: str) -> Answer:
    """Fenced by what the client was shown: the question that has this id, with this digest."""
    from mam.jobs.question_acts import Answer

    question = asked.question
    return Answer(number=question.number, attempt=question.attempt, digest=question.digest, answer=text, by=by)
