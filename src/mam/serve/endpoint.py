"""Turns rows of the table of routes into endpoints: log-in, scope, parameters and body, then the handler."""

from __future__ import annotations

import inspect

from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from mam.access.viewer import Viewer
from mam.errors import BadInput, MamError, NotAllowed, NotLoggedIn
from mam.serve.auth import credentials_of, note_failure
from mam.serve.call import Answer, Call
from mam.serve.checks import check_value, parse_text, whole_numbers
from mam.serve.problems import Problem, facts_of, problem_response
from mam.serve.route import ANYBODY, HEADER, PATH, QUERY
from mam.util.strict_json import UnsafeJson, strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.requests import Request

    from mam.jobs.record import Json
    from mam.serve.route import Handler, Param, Route
    from mam.serve.server import Server

NOBODY_NAME = "nobody"
_EARLY_CHECK = 1 << 16
"""Bytes of a body that a caller may send before the server knows who it is."""


def endpoints(server: Server, routes: Iterable[Route]) -> list[StarletteRoute]:
    """One endpoint a path, so that a wrong method is answered with those that the path has."""
    paths: dict[str, dict[str, Route]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method] = route
    return [
        StarletteRoute(path, _endpoint(server, methods), methods=list(methods), name=next(iter(methods.values())).name)
        for path, methods in paths.items()
    ]


def _endpoint(server: Server, methods: dict[str, Route]) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        route = methods["GET" if request.method == "HEAD" else request.method]
        try:
            return _if_changed(request, await _answer(server, route, request))
        except (MamError, Problem, OSError) as error:
            too_many = note_failure(server, request) if isinstance(error, NotLoggedIn) else None
            return problem_response(facts_of(too_many or error), server.settings.path_prefix)

    return endpoint


def _if_changed(request: Request, response: Response) -> Response:
    """304 for a caller that has this revision."""
    tag, known = response.headers.get("etag"), request.headers.get("if-none-match")
    if request.method not in ("GET", "HEAD") or tag is None or known is None:
        return response
    if tag not in [one.strip().removeprefix("W/") for one in known.split(",")]:
        return response
    return Response(status_code=304, headers={"etag": tag})


async def _answer(server: Server, route: Route, request: Request) -> Response:
    _check_accept(request, route)
    viewer = None
    if inspect.iscoroutinefunction(route.handler) or _is_large(request):
        viewer = await server.call(_viewer, server, route, request)
    body = await _read_body(request, route)
    if not inspect.iscoroutinefunction(route.handler):
        return await server.call(_answer_in_thread, server, route, request, body, viewer)
    assert viewer is not None
    answered = await route.handler(_call(server, route, request, viewer, body))
    return answered.to_response() if isinstance(answered, Answer) else answered


def _answer_in_thread(
    server: Server, route: Route, request: Request, body: bytes | None, viewer: Viewer | None
) -> Response:
    """Log-in, act and encoding in one thread, since each change of threads costs time."""
    found = _viewer(server, route, request) if viewer is None else viewer
    handler: Handler = route.handler
    answered = handler(_call(server, route, request, found, body))
    assert isinstance(answered, Answer)
    return answered.to_response()


def _viewer(server: Server, route: Route, request: Request) -> Viewer:
    from mam.access.grant import Grant

    if ANYBODY in route.scopes:
        return Viewer(name=NOBODY_NAME, grant=Grant(scopes=()))
    viewer = server.find_viewer(*credentials_of(server, request))
    if not any(viewer.may(scope) for scope in route.scopes):
        needed = " or ".join(route.scopes)
        raise NotAllowed(
            who=viewer.label, what=f"use {route.method} {route.path}", why=f": it needs the scope {needed}"
        )
    return viewer


def _call(server: Server, route: Route, request: Request, viewer: Viewer, body: bytes | None) -> Call:
    return Call(server, request, viewer, _params(request, route), _parse_body(body, route))


# -- parameters ------------------------------------------------------------------------------------------------------


def _params(request: Request, route: Route) -> Json:
    given: Json = {}
    known = {param.name for param in route.params if param.place == QUERY}
    query = request.query_params
    for name in query:
        if name not in known:
            names = ", ".join(sorted(known)) or "no parameters"
            raise BadInput(why=f"{name[:60]!r} is not a parameter here; this takes {names}")
    for param in route.params:
        texts = _texts(request, param)
        if texts:
            given[param.name] = parse_text(texts, param.schema, param.name)
        elif param.is_required and param.place == HEADER:
            why = f"The header {param.name} is missing: give the attempt and the claim id of the claim."
            raise Problem(428, why, job=request.path_params.get("job", ""))
        elif param.is_required:
            raise BadInput(why=f"{param.name} is missing")
    return given


def _texts(request: Request, param: Param) -> list[str]:
    if param.place == PATH:
        return [request.path_params[param.name]]
    if param.place == HEADER:
        return request.headers.getlist(param.name)
    return request.query_params.getlist(param.name)


# -- the body --------------------------------------------------------------------------------------------------------


def _is_large(request: Request) -> bool:
    length = request.headers.get("content-length")
    if length is None:
        return "transfer-encoding" in request.headers
    return not length.isdigit() or int(length) > _EARLY_CHECK


async def _read_body(request: Request, route: Route) -> bytes | None:
    if request.method in ("GET", "HEAD"):
        return None
    data = await request.body()
    if not data:
        return None
    if route.body is None:
        raise Problem(422, "This takes no body.", kind="BadInput", exit_code=2)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Problem(415, "The body must be JSON: content-type: application/json.", exit_code=2)
    return data


def _parse_body(data: bytes | None, route: Route) -> Json:
    if route.body is None:
        return {}
    if data is None:
        if route.needs_body:
            raise Problem(422, "A JSON object is missing.", kind="BadInput", exit_code=2)
        return {}
    try:
        body = strict_json(data)
    except UnsafeJson as unsafe:
        raise Problem(400, f"The body is not JSON: {unsafe}.", exit_code=2) from None
    except ValueError:
        raise Problem(400, "The body is not JSON.", exit_code=2) from None
    if isinstance(body, dict):
        body = whole_numbers(body, route.body)
    check_value(body, route.body, "the body")
    found: Json = body
    return found


def _check_accept(request: Request, route: Route) -> None:
    accept = request.headers.get("accept")
    if accept is None:
        return
    group = route.media_type.partition("/")[0]
    for part in accept.split(","):
        kind, *options = (word.strip().lower() for word in part.split(";"))
        is_refused = any(option.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000") for option in options)
        if kind in ("*/*", f"{group}/*", route.media_type, "") and not is_refused:
            return
    raise Problem(406, f"This answers with {route.media_type}.", exit_code=2)
