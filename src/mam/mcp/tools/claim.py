"""`claim`: takes the next job of a label. The handle that it returns is the right to report on this claim."""

from __future__ import annotations

from mam.mcp.tool import Call, Tool, tool_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.messages import Json


def run(call: Call) -> Json:
    label, seconds = call.arguments["label"], call.arguments.get("lease")
    job = call.service.backend.claim(label, None if seconds is None else float(seconds))
    if job is None:
        return tool_result({"job_id": None, "why": f"No pending job for {label}."})
    handle = f"{job.job_id}.{job.attempt}.{job.claim_id}"
    lease = None if job.lease is None else job.lease.expires_at
    found: Json = {"job_id": job.job_id, "handle": handle, "agent": job.agent, "workdir": job.workdir}
    work = {"prompt": job.prompt, "artifacts": list(job.expected_artifacts)}
    return tool_result({**found, "lease_until": lease, **work})


TOOL = Tool(
    name="claim",
    description="Claim the next job of a label and do its work; report with the handle.",
    properties={
        "label": {"type": "string"},
        "lease": {"type": "number", "minimum": 10, "maximum": 86400, "description": "Seconds"},
    },
    required=("label",),
    run=run,
    writes=True,
    for_workers=True,
)
