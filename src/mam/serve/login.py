"""Log-in of browsers: a one-time code is exchanged for a cookie, by POST only.

The code is in the fragment of the printed address, which a browser sends to no server; a script puts it into the form.
Without a script, a person types it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from starlette.responses import RedirectResponse
from starlette.routing import Route

from mam.access.credentials import SESSION_DAYS, close_session, exchange_code
from mam.errors import NotLoggedIn
from mam.serve.auth import caller_of, viewer_of
from mam.serve.pages.environment import render
from mam.serve.problems import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mam.access.credentials import NewSecret
    from mam.serve.server import Server

FORM_LIMIT = 1 << 16


def login_routes(server: Server) -> list[Route]:
    async def show(request: Request) -> Response:
        return _form(server, request, "", 200)

    async def log_in(request: Request) -> Response:
        caller = caller_of(server, request)
        left = server.failed_logins.seconds_left(caller)
        if left:
            wait = _form(server, request, f"Too many wrong codes came from this address; try again in {left} s.", 429)
            wait.headers["retry-after"] = str(left)
            return wait
        code, target = await form_fields(request, "code", "next")
        try:
            made = await server.call(exchange_code, server.registry.store, code)
        except NotLoggedIn as wrong:
            server.failed_logins.note(caller)
            return _form(server, request, str(wrong), 401)
        server.failed_logins.forget(caller)
        response = RedirectResponse(f"{server.settings.path_prefix}{_own_path(target)}", 303)
        set_cookie(server, response, made)
        return response

    async def log_out(request: Request) -> Response:
        viewer = await server.call(viewer_of, server, request)
        (given,) = await form_fields(request, "csrf")
        response = RedirectResponse(f"{server.settings.path_prefix}/login", 303)
        if viewer is not None and viewer.session is not None and is_own_form(server, request, given):
            await server.call(close_session, server.registry.store, viewer.session)
            response.delete_cookie(server.cookie_name, path=_cookie_path(server))
        return response

    return [
        Route("/login", show, methods=["GET"]),
        Route("/login", log_in, methods=["POST"]),
        Route("/logout", log_out, methods=["POST"]),
    ]


def set_cookie(server: Server, response: Response, made: NewSecret) -> None:
    response.set_cookie(
        server.cookie_name, made.secret, max_age=SESSION_DAYS * 24 * 3600, path=_cookie_path(server), httponly=True,
        samesite="lax", secure=server.settings.is_https,
    )  # fmt: skip


def _cookie_path(server: Server) -> str:
    return server.settings.path_prefix or "/"


async def form_fields(request: Request, *names: str) -> tuple[str, ...]:
    """The fields of a form in the usual encoding; empty for those that are missing."""
    from urllib.parse import parse_qs

    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        return ("",) * len(names)
    data = await _small_body(request)
    try:
        fields = parse_qs(data.decode(), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        return ("",) * len(names)
    return tuple(fields.get(name, [""])[0] for name in names)


async def _small_body(request: Request) -> bytes:
    """Callers that are not logged in make the server keep no more than this."""
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > FORM_LIMIT:
            raise Problem(413, f"The form has more than {FORM_LIMIT:,} bytes.")
    return data


def csrf_token(server: Server, request: Request) -> str:
    """For the forms of this session. It differs each time, so that compressed answers reveal nothing about it."""
    nonce = secrets.token_urlsafe(12)
    return f"{nonce}.{_csrf_digest(server, request, nonce)}"


def is_own_form(server: Server, request: Request, given: str) -> bool:
    nonce, _, digest = given.partition(".")
    return given.isascii() and hmac.compare_digest(digest, _csrf_digest(server, request, nonce))


def _csrf_digest(server: Server, request: Request, nonce: str) -> str:
    session = request.cookies.get(server.cookie_name, "")
    return hmac.new(session.encode(), f"csrf:{nonce}".encode(), hashlib.sha256).hexdigest()


def _form(server: Server, request: Request, problem: str, status: int) -> Response:
    target = _own_path(request.query_params.get("next", "/"))
    return render(server, request, "login.html", status=status, problem=problem, next=target)


def _own_path(target: str) -> str:
    """A path of this server, never another host."""
    is_own = target.startswith("/") and not target.startswith("//") and "\\" not in target and target.isprintable()
    return target if is_own and len(target) <= 2000 else "/"
