"""THE table of routes of the API: a row for each. The server, its description and its tests are made from it."""

from __future__ import annotations

from mam.serve.api import events, jobs, service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.serve.route import Route

ROUTES: tuple[Route, ...] = (*jobs.ROUTES, *events.ROUTES, *service.ROUTES)
