"""A question of a job as a form that the client shows to its user, and the form as an answer.

MCP answers questions of kind `question` and `review`; a permission only if the user's settings say so. Inside a job it
answers none: an agent must not decide for a person.
"""

from __future__ import annotations

from mam.jobs.question import DECISIONS, PERMISSION, open_questions, question_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.question import Question
    from mam.jobs.record import Job
    from mam.mcp.caller import Service
    from mam.mcp.messages import Json
    from mam.mcp.versions import Client

FIELD = "answer"
TEXT_SHOWN, CHOICE_SHOWN = 4_000, 200
MOST_RESPONSES = 64


def forms_of(service: Service, client: Client, job: Job) -> Json:
    """The open questions that this client may answer, by their ids. A permission is shown with its exact input."""
    if not client.takes_forms:
        return {}
    return {
        question_id(job.job_id, question.number): _form(_message(job, question), _choices(question))
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


def form_for_person(service: Service, client: Client, job: Job, choices: tuple[str, ...] = ()) -> Json:
    """A job for a person as a form, by its id; nothing if this client may not answer it."""
    if not (client.takes_forms and service.backend.may_answer_job(job) and all(map(_can_be_shown, choices))):
        return {}
    message = f"An agent asks: {_printable(job.prompt)}"
    if len(message) > TEXT_SHOWN:
        message = f"{message[:TEXT_SHOWN]}… (`mam show {job.job_id[:8]}` shows all of it)"
    return {job.job_id: _form(message, choices)}


def answer_job(service: Service, client: Client, job: Job, response: object) -> None:
    """Ends a job for a person with what the user of the client answered."""
    from mam.errors import AnswerTooLate, BadInput, Refused

    text = _text(response)
    if text is None or not service.backend.may_answer_job(job):
        return
    try:
        service.backend.answer_job(job, text, client.name)
    except (AnswerTooLate, BadInput, Refused):
        return


def answer_form(service: Service, client: Client, key: str, response: Json) -> None:
    """Stores an answer that came after its request had ended."""
    from mam.errors import MamError

    job_id, dot, _ = key.partition(".")
    try:
        job = service.backend.get_exact(job_id)
        if dot:
            answer_forms(service, client, job, {key: response})
        else:
            answer_job(service, client, job, response)
    except (MamError, OSError):
        return  # nobody waits for the outcome; the question stays open


def is_open(service: Service, key: str) -> bool:
    from mam.errors import MamError

    job_id, dot, _ = key.partition(".")
    try:
        job = service.backend.get_exact(job_id)
    except (MamError, OSError):
        return False
    return _named(job, key) is not None if dot else not job.status.ended


def _named(job: Job, key: str) -> Question | None:
    return next((one for one in open_questions(job) if question_id(job.job_id, one.number) == key), None)


def _text(response: object) -> str | None:
    """The answer in a response. `cancel` and `decline` leave the question open: a client in which there is no person,
    such as `codex exec`, declines on its own."""
    if not isinstance(response, dict):
        return None
    content = response.get("content")
    if response.get("action") != "accept" or not isinstance(content, dict):
        return None
    answer = content.get(FIELD)
    return answer if isinstance(answer, str) else None


def _choices(question: Question) -> tuple[str, ...]:
    return DECISIONS if question.kind == PERMISSION else tuple(question.choices)


def _form(message: str, choices: tuple[str, ...]) -> Json:
    field: Json = {"type": "string", "title": "Answer"}
    if choices:
        field["enum"] = list(choices)
    schema = {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def _is_whole(job: Job, question: Question) -> bool:
    """A form must show all of a permission, and each choice as it is. The user answers any other question in the
    terminal or on the page."""
    is_shown = question.kind != PERMISSION or len(_whole_message(job, question)) <= TEXT_SHOWN
    return is_shown and all(_can_be_shown(choice) for choice in question.choices)


def _can_be_shown(choice: str) -> bool:
    return choice.isprintable() and len(choice) <= CHOICE_SHOWN


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
