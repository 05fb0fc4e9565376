"""Streams of notifications: resources that changed, and tasks with their new state."""

from __future__ import annotations

from mam.errors import MamError
from mam.mcp.messages import INVALID_PARAMS, RpcError, notification
from mam.mcp.outcome import Listening
from mam.mcp.resources import find_resource
from mam.mcp.tasks import detailed_task, find_job
from mam.mcp.versions import META, missing_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.caller import Service
    from mam.mcp.messages import Json, Request
    from mam.mcp.versions import Client

MOST = 100
"""Addresses and tasks of one stream."""

_ID = f"{META}subscriptionId"


def listen(service: Service, client: Client, request: Request) -> Listening:
    """The stream that `subscriptions/listen` asks for, without what mam never sends and jobs that do not exist."""
    wanted = request.params.get("notifications")
    if not isinstance(wanted, dict):
        raise RpcError(INVALID_PARAMS, "subscriptions/listen needs notifications, an object")
    if wanted.get("taskIds") and not client.takes_tasks:
        raise missing_tasks()
    resources = {uri: job for uri in _texts(wanted, "resourceSubscriptions") if (job := _job_of(service, uri))}
    tasks = [task for task in _texts(wanted, "taskIds") if _is_task(service, task)]
    meta = {_ID: request.id}
    agreed: Json = {}
    if resources:
        agreed["resourceSubscriptions"] = list(resources)
    if tasks:
        agreed["taskIds"] = tasks

    def changed(job_id: str) -> list[Json]:
        news = [resource_changed(uri, meta) for uri, job in resources.items() if job == job_id]
        return news + [_task_changed(service, client, job_id, meta)] * (job_id in tasks)

    return Listening(
        subscription=request.id, jobs=frozenset([*resources.values(), *tasks]), changed=changed,
        opening=notification("notifications/subscriptions/acknowledged", {"_meta": meta, "notifications": agreed}),
        closing={"resultType": "complete", "_meta": meta},
    )  # fmt: skip


def resource_changed(uri: str, meta: Json | None = None) -> Json:
    return notification(
        "notifications/resources/updated", {"uri": uri} if meta is None else {"_meta": meta, "uri": uri}
    )


def _task_changed(service: Service, client: Client, job_id: str, meta: Json) -> Json:
    task = detailed_task(service, client, find_job(service, job_id))
    return notification("notifications/tasks", {"_meta": meta, **task})


def _texts(wanted: Json, name: str) -> list[str]:
    found = wanted.get(name) or []
    if not isinstance(found, list) or len(found) > MOST or not all(isinstance(one, str) for one in found):
        raise RpcError(INVALID_PARAMS, f"{name} is a list of at most {MOST} texts")
    return list(dict.fromkeys(found))


def _job_of(service: Service, uri: str) -> str | None:
    try:
        return find_resource(service, uri)[0].job_id
    except MamError:
        return None


def _is_task(service: Service, task_id: str) -> bool:
    try:
        return bool(find_job(service, task_id))
    except RpcError:
        return False
