"""`cancel`: calls off a job."""

from __future__ import annotations

from mam.mcp.tool import Call, Tool, tool_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.messages import Json


def run(call: Call) -> Json:
    call.service.check_may_write()
    reason = call.arguments.get("reason") or f"cancelled over MCP by {call.service.caller.name}"
    job = call.service.backend.cancel(call.arguments["job"], reason)
    return tool_result({"job_id": job.job_id, "status": job.status})


TOOL = Tool(
    name="cancel",
    description="Cancel a job that has not ended; its agent is stopped.",
    properties={"job": {"type": "string"}, "reason": {"type": "string"}},
    required=("job",),
    run=run,
    writes=True,
    destroys=True,
    repeats=True,
)
