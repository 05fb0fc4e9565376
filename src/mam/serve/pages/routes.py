"""The routes of the page."""

from __future__ import annotations

from starlette.routing import Route

from mam.serve.pages import acting, showing
from mam.serve.pages.page_call import form_endpoint, page_endpoint
from mam.serve.pages.static_files import service_worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from mam.serve.server import Server


def page_routes(server: Server) -> list[BaseRoute]:
    """In the order in which they are tried. `page_not_found` comes behind every other route of the server."""

    def get(path: str, handler: object) -> Route:
        return Route(path, page_endpoint(server, handler), methods=["GET"])  # type: ignore[arg-type]

    def post(path: str, handler: object) -> Route:
        return Route(path, form_endpoint(server, handler), methods=["POST"])  # type: ignore[arg-type]

    return [
        get("/", showing.home), get("/jobs", showing.jobs), get("/jobs/new", showing.new_job),
        post("/jobs/new", acting.preview), post("/jobs", acting.register), post("/jobs/all", acting.act_on_jobs),
        get("/jobs/{job}", showing.job), get("/jobs/{job}/version", showing.version),
        get("/jobs/{job}/record", showing.record), get("/jobs/{job}/edit", showing.edit),
        get("/jobs/{job}/artifacts/{path:path}", showing.artifact),
        get("/jobs/{job}/files/{path:path}", showing.download),
        post("/jobs/{job}/edit", acting.edit), post("/jobs/{job}/continue", acting.continue_job),
        post("/jobs/{job}/review", acting.review), post("/jobs/{job}/{verb}", acting.act_on_job),
        post("/questions/{question}", acting.answer),
        get("/workers", showing.workers), post("/workers", acting.ask_worker),
        post("/sessions", acting.stop_session), post("/pauses", acting.pause),
        get("/statistics", showing.statistics), get("/health", showing.health), get("/tokens", showing.tokens),
        get("/help", showing.help_page), post("/theme", acting.theme),
        get("/notifications", showing.notifications), post("/notifications", acting.notifications),
        Route("/sw.js", service_worker, methods=["GET"]),
        Route("/manifest.webmanifest", showing.manifest(server), methods=["GET"]),
        Route("/robots.txt", showing.robots, methods=["GET"]),
    ]  # fmt: skip


def page_not_found(server: Server) -> list[BaseRoute]:
    """The last route: an address that nothing else answers."""
    return [Route("/{path:path}", page_endpoint(server, showing.not_found), methods=["GET"])]
