"""THE table of routes of the API: a row for each. The server, its description and its tests are made from it."""

from __future__ import annotations

from mam.serve.api import changing, claims, description, events, files, jobs, questions, service, tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.serve.route import Route

ROUTES: tuple[Route, ...] = (
    *jobs.ROUTES, *changing.ROUTES, *files.ROUTES, *claims.ROUTES, *questions.ROUTES, *events.ROUTES, *service.ROUTES,
    *tokens.ROUTES, *description.ROUTES,
)  # fmt: skip
