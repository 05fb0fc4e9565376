"""One row of the table of routes: everything that the server, its description and its tests know about a route."""

from __future__ import annotations

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response

    from mam.jobs.record import Json
    from mam.serve.call import Answer, Call

    Handler = Callable[[Call], Answer] | Callable[[Call], Awaitable[Answer | Response]]

ANYBODY = "anybody"
"""The scope of a route that needs no log-in."""

PATH, QUERY, HEADER = "path", "query", "header"


class Param(Frozen):
    name: str
    schema: Json
    meaning: str
    place: str = QUERY
    is_required: bool = False


class Route(Frozen):
    method: str
    path: str
    """Below /api/v1, with {names}."""
    name: str
    """Unique; the operationId."""
    summary: str
    scopes: tuple[str, ...]
    """One of these is needed. Which jobs a viewer may see or change, `mam.access` decides."""
    handler: Handler
    """A plain function runs in a thread; a coroutine runs in the event loop and must not block."""
    params: tuple[Param, ...] = ()
    body: Json | None = None
    """The schema of the JSON object that it takes."""
    needs_body: bool = True
    answer: Json | None = None
    """The schema of its usual answer; None for one without a body."""
    status: int = 200
    media_type: str = "application/json"
    others: dict[int, str] = {}  # noqa: RUF012
    """Other statuses that it answers with, and what they mean."""
    verb: str | None = None
    """The command that does the same."""
    details: str = ""
