"""`show`: one job, with the fields that the caller chooses."""

from __future__ import annotations

from mam.mcp.tool import Call, Tool, tool_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.messages import Json

FIELDS = ("why", "prompt", "state", "result", "changes", "checks", "cost", "where", "chain", "questions")
USUAL = ("why", "result", "changes", "questions")


def run(call: Call) -> Json:
    from mam.mcp.job_report import asked, outcome
    from mam.mcp.untrusted import PART, untrusted

    wanted = call.arguments.get("fields") or USUAL
    job, whole = call.service.backend.overview(call.arguments["job"])
    found: Json = {"job_id": job.job_id, "status": job.status, "agent": job.agent, "label": job.agent_session}
    if "why" in wanted:
        found["why"] = " ".join(whole["why"])
    if "prompt" in wanted:
        found["prompt"] = untrusted(job.prompt, PART, f"resource mam://jobs/{job.job_id}")
    if "questions" in wanted:
        found |= asked(job)
    if "result" in wanted and job.status.ended:
        found |= outcome(job, PART)
    plain = ("state", "checks", "cost", "where", "chain", "changes")
    return tool_result({**{name: whole[name] for name in plain if name in wanted and whole[name]}, **found})


TOOL = Tool(
    name="show",
    description="Show one job: why it is in its state (explain), result, changes, open questions.",
    properties={
        "job": {"type": "string"},
        "fields": {"type": "array", "items": {"type": "string", "enum": list(FIELDS)}},
    },
    required=("job",),
    run=run,
    repeats=True,
)
