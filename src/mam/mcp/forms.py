"""A question of a job as a form that the client shows to its user, and the form as an answer.

MCP answers questions of kind `question` and `review`; a permission only if the user's settings say so. Inside a job it
answers none: an agent must not decide for a person.
"""

from __future__ import annotations

from mam.jobs.question import DENY, PERMISSION, open_questions, question_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.question import Question
    from mam.jobs.record import Job
    from mam.mcp.caller import Service
    from mam.mcp.messages import Json
    from mam.mcp.versions import Client

FIELD = "answer"
TEXT_SHOWN = 4_000
MOST_RESPONSES = 64


def forms_of(service: Service, client: Client, job: Job) -> Json:
    """The open questions that this client may answer, by their ids. A permission is shown with its exact input."""
    if not client.takes_forms:
        return {}
    return {
        question_id(job.job_id, question.number): _form(job, question)
        for question in open_questions(job)
        if service.backend.may_answer(job, question) and _is_whole(job, question)
    }


def answer_forms(service: Service, client: Client, job: Job, responses: Json) -> None:
    """Stores the answers. Those to questions that are closed, unknown or not for this client are ignored, as the
    protocol asks: a repeated or late response changes nothing."""
    from mam.errors import AnswerTooLate, BadInput, Refused
    from mam.questions import Asked

    for key, response in list(responses.items())[:MOST_RESPONSES]:
        question = _named(job, key)
        if question is None or not (service.backend.may_answer(job, question) and _is_whole(job, question)):
            continue
        text = _text(response)
        if text is None:
            continue
        try:
            service.backend.answer(Asked(job=job, question=question), text, client.name)
        except (AnswerTooLate, BadInput, Refused):
            continue


def _named(job: Job, key: str) -> Question | None:
    return next((one for one in open_questions(job) if question_id(job.job_id, one.number) == key), None)


def _text(response: object) -> str | None:
    """The answer in a response: `cancel` closes the form and leaves the question open; `decline` is a decision."""
    if not isinstance(response, dict):
        return None
    if response.get("action") == "decline":
        return DENY
    content = response.get("content")
    if response.get("action") != "accept" or not isinstance(content, dict):
        return None
    answer = content.get(FIELD)
    return answer if isinstance(answer, str) else None


def _form(job: Job, question: Question) -> Json:
    field: Json = {"type": "string", "title": "Answer"}
    choices = ["allow", "deny", "always"] if question.kind == PERMISSION else list(question.choices)
    if choices:
        field["enum"] = choices
    schema = {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}
    params = {"mode": "form", "message": _message(job, question), "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def _is_whole(job: Job, question: Question) -> bool:
    """A form must show all of a permission. The user answers any other one in the terminal or on the page."""
    return question.kind != PERMISSION or len(_whole_message(job, question)) <= TEXT_SHOWN


def _message(job: Job, question: Question) -> str:
    asked = _whole_message(job, question)
    if len(asked) > TEXT_SHOWN:
        asked = f"{asked[:TEXT_SHOWN]}… (`mam questions` shows all of it)"
    return asked


def _whole_message(job: Job, question: Question) -> str:
    import json

    asked = f"Job {job.job_id[:8]} ({job.agent}) asks: {_printable(question.text)}"
    if question.tool is not None:
        shown = json.dumps(question.input, ensure_ascii=True, sort_keys=True)
        asked += f"\n{_printable(question.tool)} {shown}"
    return asked


def _printable(text: str) -> str:
    """Without control and direction characters, which could make a question look like another."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in text)
