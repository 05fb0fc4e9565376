"""`/mcp`: the tools for agents over HTTP, with the rights of a token."""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from starlette.routing import Route

from mam.errors import MamError, NotLoggedIn
from mam.mcp.caller import Service
from mam.mcp.http import client_of_request, read_body, status_of
from mam.mcp.messages import Notification, RpcError, encode, error_message, id_of, result_message
from mam.mcp.outcome import Listening, Parked, Watching
from mam.mcp.protocol import answer, handshake
from mam.mcp.viewer_backend import ViewerBackend, caller_of
from mam.serve.auth import credentials_of, log_in_watch, note_failure
from mam.serve.problems import Problem, facts_of, problem_response
from mam.serve.sse import HEADERS, KEEP_ALIVE_SECONDS, EventStream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request as HttpRequest

    from mam.access.viewer import Viewer
    from mam.mcp.messages import Json, Request
    from mam.mcp.protocol import Outcome
    from mam.serve.hub import JournalHub
    from mam.serve.server import Server

LOOK_SECONDS = 5.0
"""How often a request that waits looks whether its client is still there."""


def mcp_routes(server: Server) -> list[Route]:
    async def endpoint(request: HttpRequest) -> Response:
        try:
            return await _answer(server, request)
        except (MamError, Problem, OSError) as error:
            too_many = note_failure(server, request) if isinstance(error, NotLoggedIn) else None
            return problem_response(facts_of(too_many or error), server.settings.path_prefix)

    return [Route("/mcp", endpoint, methods=["POST", "GET", "DELETE"], name="mcp")]


async def _answer(server: Server, request: HttpRequest) -> Response:
    if request.method != "POST":
        # Older versions of the protocol have a stream and sessions here; mam needs neither.
        raise Problem(405, "The tools for agents are called with POST.", headers={"allow": "POST"})
    viewer = await server.call(lambda: server.find_viewer(*credentials_of(server, request)))
    body = await request.body()
    try:
        message = read_body(body)
    except RpcError as error:
        return _json(error_message(id_of(body), error), status_of(error))
    if message is None or isinstance(message, Notification):
        return Response(status_code=202)
    try:
        return await _respond(server, request, viewer, message)
    except RpcError as error:
        return _json(error_message(message.id, error), status_of(error))


async def _respond(server: Server, request: HttpRequest, viewer: Viewer, message: Request) -> Response:
    if message.method == "initialize":
        return _json(result_message(message.id, handshake(message.params, can_subscribe=False)[1]))
    if message.method == "ping" and "_meta" not in message.params:
        return _json(result_message(message.id, {}))
    client = client_of_request(message, request.headers)
    number = server.hub.last  # before the first look, so that no change falls between the two
    service = _service(server, viewer)
    outcome: Outcome = await server.call(answer, service, client, message)
    if isinstance(outcome, Parked):
        result = await _wait(server, request, outcome, number)
        return Response(status_code=499) if result is None else _json(result_message(message.id, result))
    if isinstance(outcome, Listening):
        return EventStream(_stream(server, request, outcome, number), media_type="text/event-stream", headers=HEADERS)
    if isinstance(outcome, Watching):
        raise RpcError(-32601, "without a session there is nothing to tell; read the resource again")
    return _json(result_message(message.id, outcome))


def _service(server: Server, viewer: Viewer) -> Service:
    backend = ViewerBackend(server.rights_of(viewer), lambda: server.config)
    return Service(caller_of(viewer), backend, lambda: server.config)


def _json(message: Json, status: int = 200) -> Response:
    return Response(encode(message), status, media_type="application/json")


async def _wait(server: Server, request: HttpRequest, parked: Parked, number: int) -> Json | None:
    """The result, or None when the client is gone. It holds no thread while it waits."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + parked.seconds
    while True:
        result = await server.call(parked.check, server.hub.is_stopped)
        if result is not None:
            return result
        changed = False
        while not changed and not server.hub.is_stopped:
            left = ends - loop.time()
            if left <= 0:
                return await server.call(parked.check, True)
            if await request.is_disconnected():
                return None
            number, changed = await _next(server.hub, number, parked.jobs, min(left, LOOK_SECONDS))


async def _next(hub: JournalHub, number: int, jobs: frozenset[str], seconds: float) -> tuple[int, bool]:
    """Sleeps until something happens. Returns where to go on, and whether one of these jobs may have changed."""
    found = _changed(hub, number, jobs)
    if not found:
        number = hub.last
        await hub.wait(seconds)
        found = _changed(hub, number, jobs)
    return hub.last, bool(found)


def _changed(hub: JournalHub, number: int, jobs: frozenset[str]) -> set[str]:
    """All of them if the hub no longer knows."""
    changes = hub.after(number)
    return set(jobs) if changes is None else {change.job_id for change in changes} & jobs


async def _stream(server: Server, request: HttpRequest, stream: Listening, number: int) -> AsyncIterator[bytes]:
    hub, loop = server.hub, asyncio.get_running_loop()
    yield _frame(stream.opening)
    spoke, log_in = loop.time(), log_in_watch(server, request)
    while not hub.is_stopped:
        if await log_in.has_ended():
            return
        jobs, number = _changed(hub, number, stream.jobs), hub.last
        for job_id in sorted(jobs):
            for message in await server.call(_news, stream, job_id):
                yield _frame(message)
                spoke = loop.time()
        if jobs:
            continue
        await hub.wait(max(0.0, spoke + KEEP_ALIVE_SECONDS - loop.time()))
        if loop.time() >= spoke + KEEP_ALIVE_SECONDS:
            yield b": keep-alive\n\n"
            spoke = loop.time()
    yield _frame(result_message(stream.subscription, stream.closing))


def _news(stream: Listening, job_id: str) -> list[Json]:
    try:
        return stream.changed(job_id)
    except (RpcError, MamError):
        return []  # the job is gone, or no longer for this caller


def _frame(message: Json) -> bytes:
    return b"event: message\ndata: " + encode(message) + b"\n"
