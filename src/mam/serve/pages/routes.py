"""The routes of the page."""

from __future__ import annotations

from starlette.responses import RedirectResponse
from starlette.routing import Route

from mam.serve.auth import viewer_of
from mam.serve.pages.environment import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from mam.serve.server import Server


def page_routes(server: Server) -> list[BaseRoute]:
    async def home(request: Request) -> Response:
        viewer = await server.call(viewer_of, server, request)
        if viewer is None:
            return RedirectResponse(f"{server.settings.path_prefix}/login", 303)
        return render(server, request, "home.html", viewer=viewer.name)

    return [Route("/", home, methods=["GET"])]
