"""`ask`: a question to a person."""

from __future__ import annotations

from mam.mcp.outcome import Parked
from mam.mcp.tool import Call, Tool, tool_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.messages import Json
    from mam.questions import Asked

SECONDS = 50


def run(call: Call) -> Json | Parked:
    from mam.mcp.asking import draft_of

    call.service.check_may_write()
    desk, known = call.service.desk, call.arguments.get("id")
    asked = desk.ask(draft_of(call.arguments)) if known is None else desk.question(known)

    def check(is_over: bool) -> Json | None:
        now = desk.question(asked.id)
        return tool_result(_state(now)) if is_over or not now.question.is_open else None

    return Parked(jobs=frozenset([asked.job.job_id]), seconds=SECONDS, check=check)


def _state(asked: Asked) -> Json:
    question = asked.question
    found: Json = {"id": asked.id, "state": question.state}
    if question.is_open:
        return {**found, "next": f"ask(question={question.text[:40]!r}, id={asked.id!r}) waits on"}
    return {**found, "answer": question.answer, "decided": question.decided, "reason": question.reason}


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
