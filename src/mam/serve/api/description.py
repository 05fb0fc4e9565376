"""The description of the API: for programs as OpenAPI, for people as a page."""

from __future__ import annotations

import json
import os
from functools import lru_cache

from mam.serve.call import Answer
from mam.serve.problems import STATUS_OF, TITLES
from mam.serve.route import ANYBODY, Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.responses import Response

    from mam.jobs.record import Json
    from mam.serve.call import Call

FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "openapi.json")


@lru_cache(1)
def description() -> Json:
    with open(FILE, encoding="utf-8") as file:
        found: Json = json.load(file)
    return found


def openapi(call: Call) -> Answer:
    return Answer(body={**description(), "servers": [{"url": f"{call.prefix}/api/v1"}]})


async def page(call: Call) -> Response:
    from mam.serve.pages.environment import render
    from mam.serve.routes import ROUTES

    problems = [(kind.__name__, status, TITLES[status], _text(kind.__doc__)) for kind, status in STATUS_OF]
    problems.sort(key=lambda one: (one[1], one[0]))
    return render(call.server, call.request, "api.html", routes=ROUTES, problems=problems, anybody=ANYBODY)


def _text(document: str | None) -> str:
    return " ".join((document or "").split())


ROUTES = (
    Route(
        method="GET",
        path="/openapi.json",
        name="openapi",
        summary="This description.",
        scopes=(ANYBODY,),
        handler=openapi,
        answer={"type": "object"},
    ),
    Route(
        method="GET",
        path="/docs",
        name="docs",
        summary="This description, as a page.",
        scopes=(ANYBODY,),
        handler=page,
        answer={"type": "string"},
        media_type="text/html",
    ),
)
