"""The application of the second listener: only the routes of prompt-valet, with the checks of the server.

docs/how-to/prompt-valet.md describes them.
"""

from __future__ import annotations

import base64
import binascii
import os

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from mam import __version__
from mam.access.grant import READ, SUBMIT
from mam.errors import MamError, NotAllowed, NotLoggedIn
from mam.inbox.names import INBOX
from mam.inbox.settings import mirror_location
from mam.jobs.status import Status
from mam.registry.listing import JobFilter
from mam.serve.auth import LogInWatch, note_failure
from mam.serve.hardening import Hardening
from mam.serve.problems import Problem
from mam.serve.valet.log import DEFAULT_LINES, last_lines, log_stream
from mam.serve.valet.problem import ValetProblem, problem_answer
from mam.serve.valet.requests import flag_in, submission_of, upload_of, whole_in
from mam.serve.valet.shown import STATE_OF, is_stalled, target_of, valet_json
from mam.serve.valet.submitting import submit
from mam.serve.valet.targets import inbox_root, is_repo, list_targets
from mam.stores.port import Query
from mam.util.clock import iso_second

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from mam.access.registry import AuthorizedRegistry
    from mam.jobs.record import Job, Json
    from mam.serve.server import Server
    from mam.serve.settings import ServeSettings

    Handler = Callable[["ValetCall"], Awaitable[Response]]

PREFIX = "/api/v1"
LIST_LIMIT = 1000
"""Jobs in an answer that names no limit."""
STALL_SECONDS = 60


class ValetCall:
    def __init__(self, server: Server, settings: ServeSettings, request: Request, rights: AuthorizedRegistry) -> None:
        self.server, self.settings, self.request, self.rights = server, settings, request, rights

    @property
    def now_ms(self) -> int:
        """It may ask the store, so it blocks."""
        return self.server.registry.store.clock.now().wall_ms

    def job(self) -> Job:
        """The job of the path, if these routes show it. It blocks."""
        try:
            job = self.rights.get(self.request.path_params["job"])
        except MamError as unknown:
            raise ValetProblem(404, "Job not found") from unknown
        if target_of(job) is None or job.job_id != self.request.path_params["job"]:
            raise ValetProblem(404, "Job not found")
        return job

    def shown(self, job: Job) -> Json:
        target = target_of(job)
        assert target is not None
        return valet_json(job, target, self.server.config, self.now_ms)


def create_valet_app(server: Server, settings: ServeSettings) -> Starlette:
    def route(path: str, handler: Handler, scope: str | None = READ, method: str = "GET") -> Route:
        return Route(PREFIX + path, _endpoint(server, settings, handler, scope), methods=[method])

    async def problem(_request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            return JSONResponse({"detail": error.detail}, error.status_code, headers=dict(error.headers or {}))
        return problem_answer(error)

    return Starlette(
        routes=[
            route("/healthz", _health, None),
            route("/status", _status),
            route("/targets", _targets),
            route("/jobs", _list),
            route("/jobs", _send, SUBMIT, "POST"),
            route("/jobs/upload", _upload, SUBMIT, "POST"),
            route("/jobs/{job}", _get),
            route("/jobs/{job}/log", _log),
            route("/jobs/{job}/log/stream", _stream),
            route("/jobs/{job}/abort", _abort, SUBMIT, "POST"),
        ],
        middleware=[Middleware(Hardening, settings=settings)],
        exception_handlers={HTTPException: problem, Problem: problem, Exception: problem},
    )


def _endpoint(
    server: Server, settings: ServeSettings, handler: Handler, scope: str | None
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            rights = await _log_in(server, request, scope)
            return await handler(ValetCall(server, settings, request, rights))
        except (ValetProblem, MamError, Problem, OSError) as error:
            too_many = note_failure(server, request) if isinstance(error, NotLoggedIn) else None
            return problem_answer(too_many or error)

    return endpoint


async def _log_in(server: Server, request: Request, scope: str | None) -> AuthorizedRegistry:
    """The token is accepted as Bearer, or as the password of Basic, so that curl needs only `-u`. Cookies are not."""
    from mam.access.grant import Grant
    from mam.access.viewer import Viewer

    if scope is None:
        return server.rights_of(Viewer(name="nobody", grant=Grant(scopes=())))
    viewer = await server.call(server.find_viewer, _token_of(request), None)
    if not viewer.may(scope) and not (scope == READ and viewer.may(SUBMIT)):
        raise NotAllowed(who=viewer.label, what="do this", why=f": it needs the scope {scope}")
    return server.rights_of(viewer)


def _token_of(request: Request) -> str:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return given.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(given.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            pass
    raise NotLoggedIn(why="Send a token as the password of Basic (`curl -u mam:TOKEN`) or as `Bearer TOKEN`.")


# -- reading -----------------------------------------------------------------------------------------------------------


async def _health(_call: ValetCall) -> Response:
    return JSONResponse({"status": "ok", "version": __version__})


async def _status(call: ValetCall) -> Response:
    return JSONResponse(await call.server.call(_status_json, call))


def _status_json(call: ValetCall) -> Json:
    config = call.server.config
    counts = dict.fromkeys(STATE_OF.values(), 0)
    for status, count in call.rights.counts().items():
        counts[STATE_OF[Status(status)]] += count
    running = call.rights.select(JobFilter(query=Query(statuses=frozenset({Status.RUNNING}))))
    root = inbox_root(config)
    inbox = "" if root is None else os.path.join(root, INBOX)
    runs = (mirror_location(config) or ("", ""))[1]
    return {
        "status": "ok",
        "config": {
            "tree_builder_root": inbox, "runs_root": runs, "stall_threshold_seconds": STALL_SECONDS,
            "bind_host": call.settings.host, "bind_port": call.settings.port,
        },
        "jobs": {
            "counts": counts, "total": sum(counts.values()),
            "stalled_running": sum(is_stalled(job, call.now_ms) for job in running),
        },
        "targets": {"count": len(list_targets(config))},
        "roots": {"tree_builder_root_exists": os.path.isdir(inbox), "runs_root_exists": os.path.isdir(runs)},
    }  # fmt: skip


async def _targets(call: ValetCall) -> Response:
    return JSONResponse([one.to_json() for one in await call.server.call(list_targets, call.server.config)])


async def _list(call: ValetCall) -> Response:
    return JSONResponse({"jobs": await call.server.call(_jobs, call)})


def _jobs(call: ValetCall) -> list[Json]:
    """Newest first."""
    asked = call.request.query_params
    stalled, limit = flag_in(asked, "stalled"), whole_in(asked, "limit", LIST_LIMIT)
    state = asked.get("state", "").lower()
    statuses = frozenset(status for status, name in STATE_OF.items() if name == state) if state else None
    if statuses is not None and not statuses:
        return []
    found: list[Json] = []
    for job in call.rights.select(JobFilter(query=Query(statuses=statuses))):
        target = target_of(job)
        if target is None or not is_repo(target, asked.get("repo", target.repo)):
            continue
        if asked.get("branch", target.branch) != target.branch:
            continue
        if stalled is None or stalled == is_stalled(job, call.now_ms):
            found.append(call.shown(job))
        if len(found) == limit:
            break
    return found


async def _get(call: ValetCall) -> Response:
    return JSONResponse(await call.server.call(lambda: call.shown(call.job())))


async def _log(call: ValetCall) -> Response:
    lines = whole_in(call.request.query_params, "lines", DEFAULT_LINES)
    text = await call.server.call(lambda: last_lines(call.server, call.job(), lines))
    return PlainTextResponse(text)


async def _stream(call: ValetCall) -> Response:
    job = await call.server.call(call.job)
    log_in = LogInWatch(call.server, lambda: call.server.find_viewer(_token_of(call.request), None))
    return log_stream(call.server, log_in, job, whole_in(call.request.headers, "last-event-id", 0, least=0))


# -- changing ----------------------------------------------------------------------------------------------------------


async def _send(call: ValetCall) -> Response:
    repo, branch, sent = await submission_of(call.request)
    (made,) = await call.server.call(submit, call.rights, call.server.config, repo, branch, [sent])
    return JSONResponse(made, 201)


async def _upload(call: ValetCall) -> Response:
    repo, branch, sent = await upload_of(call.request)
    made = await call.server.call(submit, call.rights, call.server.config, repo, branch, sent)
    return JSONResponse({"jobs": made}, 201)


async def _abort(call: ValetCall) -> Response:
    return JSONResponse(await call.server.call(_cancel, call))


def _cancel(call: ValetCall) -> Json:
    """Queued jobs too. A job that has ended stays as it is."""
    job = call.job()
    if job.status.ended:
        raise ValetProblem(409, f"Job is {STATE_OF[job.status]}; only queued and running jobs can be aborted.")
    call.rights.cancel(job.job_id, reason="aborted over the network")
    return {"job_id": job.job_id, "previous_state": STATE_OF[job.status], "abort_requested_at": iso_second(call.now_ms)}
