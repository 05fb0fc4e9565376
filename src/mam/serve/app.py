"""The application: the API, log-in, the page, and what they share."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Mount, Router

from mam.serve.endpoint import endpoints
from mam.serve.hardening import Hardening
from mam.serve.login import login_routes
from mam.serve.mcp_endpoint import mcp_routes
from mam.serve.notifying import notify_browsers
from mam.serve.pages.routes import page_not_found, page_routes
from mam.serve.pages.static_files import STATIC, PageFiles
from mam.serve.problems import TITLES, Problem, facts_of, problem_response
from mam.serve.routes import ROUTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from mam.serve.server import Server

GZIP_FROM = 1000


def create_app(server: Server) -> Starlette:
    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        server.hub.start()
        notifying = asyncio.create_task(notify_browsers(server))
        try:
            yield
        finally:
            server.hub.stop()
            await notifying

    async def problem(_request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            known = error.status_code if error.status_code in TITLES else 400
            found = Problem(known, f"{error.detail}.", headers=error.headers)
            return problem_response(facts_of(found), server.settings.path_prefix)
        return problem_response(facts_of(error), server.settings.path_prefix)

    app = Starlette(
        routes=[
            Mount("/api/v1", Router(endpoints(server, ROUTES), redirect_slashes=False)),
            Mount("/static", PageFiles(directory=STATIC)),
            *mcp_routes(server),
            *login_routes(server),
            *page_routes(server),
            *page_not_found(server),  # behind every other route
        ],
        middleware=[
            Middleware(Hardening, settings=server.settings),
            Middleware(GZipMiddleware, minimum_size=GZIP_FROM),
        ],
        exception_handlers={HTTPException: problem, Problem: problem, Exception: problem},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app
