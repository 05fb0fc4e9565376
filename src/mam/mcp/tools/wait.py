"""`wait`: waits in bounded steps until jobs end or ask something. What was already reported is in the cursor."""

from __future__ import annotations

from mam.errors import BadInput, UnknownJob
from mam.jobs.question import open_questions
from mam.mcp.outcome import Parked
from mam.mcp.tool import Call, Tool, tool_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.mcp.messages import Json

SECONDS, MOST_JOBS = 50, 100
ENDED, OPEN, GONE = "e", "-", "x"


def run(call: Call) -> Json | Parked:
    backend = call.service.backend
    ids = list(dict.fromkeys(backend.resolve(name) for name in call.arguments["ids"]))
    seen = _marks(call.arguments.get("cursor"), len(ids))
    if call.responses:
        _answer_questions(call, ids)

    def check(is_over: bool) -> Json | None:
        found = [_read(call, job_id) for job_id in ids]
        now = [_mark(job) for job in found]
        news = [at for at, mark in enumerate(now) if mark != seen[at] and mark != OPEN]
        if not news and not is_over and OPEN in (mark[0] for mark in now):
            return None
        forms = _forms(call, [found[at] for at in news])
        if forms:
            return {"resultType": "input_required", "inputRequests": forms}
        return tool_result(_answer(call, ids, found, now, news))

    seconds = min(float(call.arguments.get("seconds", SECONDS)), SECONDS)
    return Parked(jobs=frozenset(ids), seconds=seconds, check=check)


def _forms(call: Call, news: list[Job | None]) -> Json:
    """New questions that the user of the client may answer at once. One that the user has put off is not shown again:
    the answer then reports it as news."""
    from mam.mcp.forms import forms_of

    found: Json = {}
    for job in news:
        if job is not None and job.questions:
            found |= forms_of(call.service, call.client, job)
    return {key: form for key, form in found.items() if key not in call.responses}


def _answer_questions(call: Call, ids: list[str]) -> None:
    from mam.mcp.forms import answer_forms

    for job_id in ids:
        job = _read(call, job_id)
        if job is not None:
            answer_forms(call.service, call.client, job, call.responses)


def _read(call: Call, job_id: str) -> Job | None:
    try:
        return call.service.backend.get(job_id)
    except UnknownJob:
        return None


def _answer(call: Call, ids: list[str], found: list[Job | None], now: list[str], news: list[int]) -> Json:
    from mam.mcp.job_report import report

    reports = []
    for at in news:
        job = found[at]
        reports.append({"job_id": ids[at], "status": "gone"} if job is None else report(call.service, job))
    still = [job for job in found if job is not None and not job.status.ended]
    answer: Json = {"news": reports, "open": [job.job_id for job in still], "cursor": ".".join(now)}
    if still:
        answer["next"] = f"wait(ids={ids}, cursor={answer['cursor']!r})"
        if not news:
            answer["why"] = _why_open(call, still[0])
    return answer


def _why_open(call: Call, job: Job) -> str:
    from mam.mcp.job_report import why

    return f"{job.job_id[:8]}: {why(call.service, job)}"


def _mark(job: Job | None) -> str:
    """What the caller knows of a job after an answer: `e` ended, `-` open, `-3` open with question 3."""
    if job is None:
        return GONE
    if job.status.ended:
        return ENDED
    return OPEN + "_".join(str(question.number) for question in open_questions(job))


def _marks(cursor: str | None, count: int) -> list[str]:
    if cursor is None:
        return [OPEN] * count
    marks = cursor.split(".")
    if len(marks) != count or not all(mark[:1] in (ENDED, OPEN, GONE) for mark in marks):
        raise BadInput(why="this cursor belongs to other ids; repeat the call without a cursor")
    return marks


TOOL = Tool(
    name="wait",
    description="Wait until delegated jobs end or ask a question, and get the results. While `open` is not empty, "
    "call it again with the same ids and the cursor.",
    properties={
        "ids": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST_JOBS},
        "seconds": {"type": "number", "minimum": 0, "maximum": SECONDS},
        "cursor": {"type": "string"},
    },
    required=("ids",),
    run=run,
    repeats=True,
)
