"""Questions that jobs ask people."""

from __future__ import annotations

from mam.access.grant import ANSWER, READ, SUBMIT
from mam.jobs.question import TEXT_LIMIT
from mam.serve.call import Answer
from mam.serve.route import PATH, Param, Route
from mam.serve.schemas import REASON, record, ref, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.serve.call import Call

QUESTION = Param(
    name="question", place=PATH, is_required=True, meaning="The id of a question, JOB.NUMBER.",
    schema={"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.[0-9]{1,9}$"},
)  # fmt: skip
GIVEN = record(
    {
        "answer": text(TEXT_LIMIT, "allow, deny or always for a permission; otherwise a choice or a text.",
                       example="allow"),
        "digest": text(64, "The digest of the question that was shown; of another one the answer is refused.",
                       pattern="^[0-9a-f]{64}$"),
        "reason": REASON,
    },
    required=("answer", "digest"),
)  # fmt: skip
SEE = (READ, ANSWER, SUBMIT)


def list_questions(call: Call) -> Answer:
    return Answer(body={"questions": [asked.to_json() for asked in call.rights.questions()]})


def get_question(call: Call) -> Answer:
    return Answer(body=call.rights.question(call.given["question"]).to_json())


def answer_question(call: Call) -> Answer:
    body = call.body
    asked = call.rights.answer(call.given["question"], body["answer"], digest=body["digest"], reason=body.get("reason"))
    return Answer(body=asked.to_json())


ROUTES = (
    Route(
        method="GET",
        path="/questions",
        name="list_questions",
        summary="The open questions, oldest first.",
        scopes=SEE,
        handler=list_questions,
        answer=ref("QuestionList"),
        verb="questions",
    ),
    Route(
        method="GET",
        path="/questions/{question}",
        name="get_question",
        summary="A question.",
        scopes=SEE,
        handler=get_question,
        params=(QUESTION,),
        answer=ref("AskedQuestion"),
        verb="questions",
    ),
    Route(
        method="POST",
        path="/questions/{question}/answer",
        name="answer_question",
        scopes=(ANSWER,),
        summary="Answer a question; the first answer wins.",
        handler=answer_question,
        params=(QUESTION,),
        body=GIVEN,
        answer=ref("AskedQuestion"),
        verb="answer",
    ),
)
