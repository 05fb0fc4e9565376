"""`claim`: takes the next job of a label. The handle that it returns is the right to report on this claim."""

from __future__ import annotations

import os

from mam.mcp.tool import Call, Tool, tool_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.messages import Json

HANDLE_BYTES = 16


def run(call: Call) -> Json:
    from mam.jobs.input_rules import check_name
    from mam.stores.port import ClaimRequest

    label, seconds = check_name("label", call.arguments["label"]), call.arguments.get("lease")
    request = ClaimRequest(
        label=label, owner=f"mcp:{call.service.caller.name}", host=os.uname().nodename,
        lease_seconds=None if seconds is None else float(seconds), claim_id=os.urandom(HANDLE_BYTES).hex(),
    )  # fmt: skip
    job = call.service.registry.claim(request)
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
