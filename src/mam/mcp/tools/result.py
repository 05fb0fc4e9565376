"""`result`: what came of an ended job."""

from __future__ import annotations

from mam.errors import Refused
from mam.mcp.tool import Call, Tool, tool_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.messages import Json


def run(call: Call) -> Json:
    from mam.mcp.job_report import outcome
    from mam.mcp.untrusted import WHOLE

    job = call.service.backend.get(call.arguments["job"])
    if not job.status.ended:
        raise Refused(why=f"Job {job.job_id} is {job.status} and has no result yet; call wait(ids=[{job.job_id!r}]).")
    found: Json = {"job_id": job.job_id, "status": job.status}
    return tool_result({**found, **outcome(job, WHOLE, call.arguments.get("offset", 0))})


TOOL = Tool(
    name="result",
    description="Get the result of an ended job: its text, artifacts and a summary of its changes.",
    properties={
        "job": {"type": "string"},
        "offset": {"type": "integer", "minimum": 0, "maximum": 2**31, "description": "Where to go on in a long text"},
    },
    required=("job",),
    run=run,
    repeats=True,
)
