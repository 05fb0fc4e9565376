"""Claims of workers: pick, heartbeat, complete, fail, release, events, questions. Reports are fenced by headers."""

from __future__ import annotations

from mam.access.grant import WORK
from mam.events.event import EVENTS
from mam.jobs.input_rules import TEXT_LIMIT as RESULT_LIMIT
from mam.jobs.question import CHOICES_LIMIT, KINDS, TEXT_LIMIT, Draft
from mam.serve.api.shown import etag_of_job
from mam.serve.auth import credentials_of
from mam.serve.call import Answer
from mam.serve.problems import Problem
from mam.serve.route import Route
from mam.serve.schemas import (
    ATTEMPT,
    CLAIM,
    JOB,
    PROMPT_PATTERN,
    REASON,
    SECONDS_LIMIT,
    WAIT_LIMIT,
    flag,
    name,
    record,
    ref,
    several,
    text,
    whole,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.jobs.record import Job
    from mam.serve.call import Call
    from mam.stores.port import ClaimRequest

_LEASE = whole("Seconds that the claim is valid without a heartbeat; by default the job's timeout.", 1, SECONDS_LIMIT)

PICK = record(
    {
        "label": name("The label of the job."),
        "owner": name("Who works on it; by default the name of the token."),
        "host": name("The host on which it will run: it gets the continuations of conversations that it has."),
        "lease_sec": _LEASE,
        "wait": whole("Seconds to wait for a job.", 0, WAIT_LIMIT),
    },
    required=("label",),
)
COMPLETE = record({"result": {**text(RESULT_LIMIT, "The result."), "minLength": 0}})
FAIL = record(
    {"reason": REASON, "retryable": flag("Whether the job is to be tried again after a while.")}, required=("reason",)
)
EVENT = record(
    {
        "event": {"type": "string", "enum": list(EVENTS), "description": "The name of the event."},
        "detail": {**text(10_000, "One line for people."), "minLength": 0},
        "data": {"type": "object", "description": "Facts for programs.", "additionalProperties": True},
    },
    required=("event",),
)
QUESTION = record(
    {
        "kind": {"type": "string", "enum": list(KINDS), "description": "What is needed."},
        "text": text(TEXT_LIMIT, "What a person reads.", pattern=PROMPT_PATTERN, example="Which port?"),
        "tool": name("For a permission: the tool."),
        "input": {"type": "object", "description": "For a permission: its input.", "additionalProperties": True},
        "choices": several(text(1000, "A choice.", pattern=PROMPT_PATTERN), "The possible answers.", CHOICES_LIMIT),
        "default": text(1000, "The answer when the deadline passes; `deny` by default."),
        "deadline_sec": whole("Seconds until then.", 1, SECONDS_LIMIT),
    },
    required=("kind", "text"),
)


async def pick(call: Call) -> Answer:
    """Waits in the event loop. A caller that is gone gets no job."""
    server, hub = call.server, call.server.hub
    ends, number = hub.loop.time() + call.body.get("wait", 0), hub.last
    request, job = await server.call(_first_claim, call)
    while True:
        if await call.request.is_disconnected():
            if job is not None:
                await server.call(_give_back, call, job)
            return Answer(status=204)
        if job is not None:
            return claim_answer(job)
        left = ends - hub.loop.time()
        if left <= 0 or hub.is_stopped:
            return await server.call(_nothing, call, request)
        await hub.wait_for_label(request.label, number, min(left, _LOOK_SECONDS))
        await server.call(server.find_viewer, *credentials_of(server, call.request))  # it may have been revoked
        number = hub.last
        job = await server.call(call.rights.claim, request)


_LOOK_SECONDS = 5.0
"""How often a waiting claim looks whether its caller is still there."""


def _first_claim(call: Call) -> tuple[ClaimRequest, Job | None]:
    """In one thread, since each change of threads costs time."""
    body = call.body
    request = call.rights.claim_request(
        body["label"], owner=body.get("owner"), host=body.get("host", ""), lease_seconds=body.get("lease_sec")
    )
    return request, call.rights.claim(request)


def _give_back(call: Call, job: Job) -> None:
    assert job.claim_id is not None
    call.rights.release(job.job_id, attempt=job.attempt, claim_id=job.claim_id)


def _nothing(call: Call, request: ClaimRequest) -> Answer:
    store = call.server.registry.store
    now = store.clock.now()
    for pause in store.pauses():
        if pause.agent is None and pause.label in (None, request.label) and pause.is_active(now):
            headers = {}
            left = pause.left_ms(now)
            if left is not None:
                headers["retry-after"] = str(left // 1000 + 1)
            why = f"Claims of {pause.scope} are paused{'' if pause.until is None else f' until {pause.until}'}."
            raise Problem(423, why, exit_code=3, headers=headers)
    return Answer(status=204)


def claim_answer(job: Job) -> Answer:
    """The record with the claim id, which together with the attempt is the fence of all reports."""
    return Answer(
        body=job.to_json(),
        headers={"etag": etag_of_job(job), "mam-attempt": str(job.attempt), "mam-claim": str(job.claim_id)},
    )


def heartbeat(call: Call) -> Answer:
    return claim_answer(call.rights.heartbeat(call.job, **_fence(call), lease_seconds=call.body.get("lease_sec")))


def complete(call: Call) -> Answer:
    return claim_answer(call.rights.complete(call.job, **_fence(call), result=call.body.get("result")))


def fail(call: Call) -> Answer:
    body = call.body
    job = call.rights.fail(call.job, **_fence(call), reason=body["reason"], retryable=body.get("retryable", False))
    return claim_answer(job)


def release(call: Call) -> Answer:
    return claim_answer(call.rights.release(call.job, **_fence(call)))


def publish(call: Call) -> Answer:
    body = call.body
    job = call.rights.publish(
        call.job, **_fence(call), event=body["event"], detail=body.get("detail", ""), data=body.get("data")
    )
    return claim_answer(job)


def ask(call: Call) -> Answer:
    body = call.body
    draft = Draft(
        kind=body["kind"], text=body["text"], tool=body.get("tool"), input=body.get("input"),
        choices=tuple(body.get("choices", ())), default=body.get("default", "deny"),
        deadline_seconds=body.get("deadline_sec"),
    )  # fmt: skip
    return Answer(body=call.rights.ask(call.job, draft, **_fence(call)).to_json(), status=201)


def _fence(call: Call) -> dict[str, Any]:
    return {"attempt": call.given[ATTEMPT.name], "claim_id": call.given[CLAIM.name]}


_FENCED = (JOB, ATTEMPT, CLAIM)


def _report(what: str, summary: str, handler: Any, body: dict[str, Any] | None, *, needs_body: bool = False) -> Route:
    return Route(
        method="POST", path=f"/claims/{{job}}/{what}", name=f"{what}_job", summary=summary, scopes=(WORK,),
        handler=handler, params=_FENCED, body=body, needs_body=needs_body, answer=ref("Job"), verb=what,
    )  # fmt: skip


ROUTES = (
    Route(
        method="POST", path="/claims", name="pick_job", summary="Claim the next job of a label.", scopes=(WORK,),
        handler=pick, body=PICK, answer=ref("Job"), verb="pick",
        others={204: "There was no job.", 423: "Claims of this label are paused."},
        details="The answer has the attempt and the claim id, also as headers. Send both with every report.",
    ),
    _report("heartbeat", "Renew the claim.", heartbeat, record({"lease_sec": _LEASE})),
    _report("complete", "Complete the job.", complete, COMPLETE),
    _report("fail", "End the job with an error.", fail, FAIL, needs_body=True),
    _report("release", "Return the job to pending.", release, None),
    Route(
        method="POST", path="/claims/{job}/events", name="publish_event", summary="Store an event of the job.",
        scopes=(WORK,), handler=publish, params=_FENCED, body=EVENT, answer=ref("Job"), verb="publish",
    ),
    Route(
        method="POST", path="/claims/{job}/questions", name="ask_question", summary="Ask a person.", scopes=(WORK,),
        handler=ask, params=_FENCED, body=QUESTION, status=201, answer=ref("AskedQuestion"), verb="ask",
    ),
)  # fmt: skip
