"""A job as a task of the extension `io.modelcontextprotocol/tasks`.

The id of the job is the id of the task. The store keeps the job, so a task survives the restart of client and server,
and any session that knows the id can follow it.
"""

from __future__ import annotations

from mam.errors import MamError, UnknownJob
from mam.jobs.status import CANCELLED
from mam.mcp.messages import INVALID_PARAMS, RpcError
from mam.util.clock import parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.mcp.caller import Service
    from mam.mcp.messages import Json
    from mam.mcp.versions import Client

SHORTEST_MS, LONGEST_MS = 1_000, 30_000
AGE_SHARE = 20
"""A client asks again after a twentieth of the age of the job: soon for a short one, rarely for a long one."""


def new_task(service: Service, job: Job) -> Json:
    """The result of `submit`: the job is in the store, so `tasks/get` finds it from now on."""
    return {"resultType": "task", **_task(service, job, "working"), "statusMessage": _message(service, job)}


def get_task(service: Service, client: Client, task_id: object) -> Json:
    return detailed_task(service, client, find_job(service, task_id))


def detailed_task(service: Service, client: Client, job: Job) -> Json:
    from mam.mcp.forms import forms_of

    if job.status is CANCELLED:
        return {**_task(service, job, "cancelled"), "statusMessage": job.reason or "cancelled"}
    if job.status.ended:
        return {**_task(service, job, "completed"), "result": _result(service, job)}
    forms = forms_of(service, client, job)
    task = _task(service, job, "input_required" if forms else "working")
    return {**task, "statusMessage": _message(service, job), **({"inputRequests": forms} if forms else {})}


def update_task(service: Service, client: Client, task_id: object, responses: object) -> None:
    from mam.mcp.forms import answer_forms

    job = find_job(service, task_id)
    if not isinstance(responses, dict):
        raise RpcError(INVALID_PARAMS, "inputResponses is an object: the id of each question and its response")
    answer_forms(service, client, job, responses)


def cancel_task(service: Service, task_id: object) -> None:
    """Only acknowledges when the job has ended meanwhile: the client sees its outcome with the next `tasks/get`."""
    job = find_job(service, task_id)
    if job.status.ended:
        return
    try:
        service.check_may_write()
        service.backend.cancel(job.job_id, f"{service.caller.name} cancelled the task")
    except MamError as error:
        if not service.backend.get_exact(job.job_id).status.ended:
            raise RpcError(INVALID_PARAMS, str(error)) from None


def find_job(service: Service, task_id: object) -> Job:
    """A task is named by its whole id."""
    from mam.jobs.input_rules import is_job_id

    try:
        if isinstance(task_id, str) and is_job_id(task_id):
            return service.backend.get_exact(task_id)
    except UnknownJob:
        pass
    raise RpcError(INVALID_PARAMS, "Task not found")


def _task(service: Service, job: Job, status: str) -> Json:
    task: Json = {"taskId": job.job_id, "status": status, "createdAt": job.created_at, "lastUpdatedAt": job.updated_at}
    return {**task, "ttlMs": None, "pollIntervalMs": _poll_interval(service, job)}


def _poll_interval(service: Service, job: Job) -> int:
    age = service.backend.now_ms() - parse_time(job.created_at)
    return max(SHORTEST_MS, min(LONGEST_MS, age // AGE_SHARE))


def _message(service: Service, job: Job) -> str:
    from mam.mcp.job_report import why

    return f"mam job {job.job_id}: {why(service, job)}"


def _result(service: Service, job: Job) -> Json:
    """What `submit` would have returned if it had waited. A job in error is a result too."""
    from mam.jobs.status import ERROR
    from mam.mcp.job_report import report
    from mam.mcp.tool import tool_result
    from mam.mcp.untrusted import WHOLE

    return {"resultType": "complete", **tool_result(report(service, job, WHOLE), is_error=job.status is ERROR)}
