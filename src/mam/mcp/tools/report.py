"""`report`: everything that the holder of a claim says about its job."""

from __future__ import annotations

from mam.errors import BadInput
from mam.mcp.tool import Call, Tool, tool_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.acts import Fence
    from mam.jobs.record import Job
    from mam.mcp.messages import Json

EVENTS = ("heartbeat", "progress", "complete", "fail", "release")


def run(call: Call) -> Json:
    job = _report(call)
    return tool_result({"job_id": job.job_id, "status": job.status, "attempt": job.attempt})


def _report(call: Call) -> Job:
    event, text = call.arguments["event"], call.arguments.get("text")
    job_id, fence = read_handle(call.arguments["handle"])
    said: Json = {}
    if event == "progress":
        said = {"detail": text or ""}
    elif event == "complete":
        said = {"result": text}
    elif event == "fail":
        if not text:
            raise BadInput(why="fail needs the reason, as text")
        said = {"reason": text, "retryable": bool(call.arguments.get("retryable"))}
    return call.service.backend.report(event, job_id, fence, **said)


def read_handle(handle: str) -> tuple[str, Fence]:
    job_id, _, rest = handle.partition(".")
    attempt, _, claim_id = rest.partition(".")
    if not (attempt.isascii() and attempt.isdigit() and len(attempt) < 16 and claim_id):
        raise BadInput(why="this is not a handle of claim")
    return job_id, {"attempt": int(attempt), "claim_id": claim_id}


TOOL = Tool(
    name="report",
    description="Report on a claimed job. text is the result of complete, the reason of fail, a line of progress.",
    properties={
        "handle": {"type": "string"},
        "event": {"type": "string", "enum": list(EVENTS)},
        "text": {"type": "string"},
        "retryable": {"type": "boolean", "description": "A failure that may work later"},
    },
    required=("handle", "event"),
    run=run,
    writes=True,
    for_workers=True,
)
