"""`submit`: delegates a task, as a job of the registry."""

from __future__ import annotations

from mam.mcp.tool import Call, Tool, tool_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.messages import Json


def run(call: Call) -> Json:
    from mam.mcp.job_report import report
    from mam.mcp.registering import register
    from mam.mcp.untrusted import WHOLE

    job, created = register(call.service, call.arguments)
    is_asked_for = created or job.prompt == call.arguments["prompt"]
    if is_asked_for and call.client.takes_tasks and not call.arguments.get("detach") and not job.status.ended:
        from mam.mcp.tasks import new_task

        return new_task(call.service, job)
    found = report(call.service, job, WHOLE)
    if not created:
        same = "" if is_asked_for else "; it has another prompt, and this one was not stored"
        found["note"] = f"A job with this key existed{same}."
    elif not job.status.ended:
        found["next"] = f"wait(ids=[{job.job_id!r}])"
    return tool_result(found)


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
TOOL = Tool(
    name="submit",
    description="Delegate a task to another coding agent, a script or a person: register a job. "
    "The agent does not see this conversation. Then call wait, unless the client follows the job as a task.",
    properties={
        "prompt": {"type": "string", "description": "The whole task"},
        "agent": {"type": "string", "description": "claude-code, codex, opencode, human …"},
        "label": {"type": "string", "description": "A worker or tmux:SESSION; default: the agent"},
        "workdir": {"type": "string", "description": "Default: this project"},
        "repo": {"type": "string", "description": "owner/repo, instead of workdir"},
        "model": _TEXT,
        "after": {**_TEXTS, "description": "Jobs that must complete first"},
        "exclusive": {"type": "string", "description": "Jobs with one key run one at a time"},
        "artifacts": {**_TEXTS, "description": "Files that must exist at the end"},
        "key": {"type": "string", "description": "A repeat with this key returns the same job"},
        "continues": {"type": "string", "description": "A job whose conversation this adds to"},
        "detach": {"type": "boolean", "description": "Only return the id"},
    },
    required=("prompt",),
    run=run,
    writes=True,
)
