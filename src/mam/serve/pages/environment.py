"""Renders templates. Everything that a template prints is escaped."""

from __future__ import annotations

import os
from functools import lru_cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.requests import Request

    from mam.serve.server import Server

TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")


@lru_cache(1)
def environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip


def render(server: Server, _request: Request, template: str, *, status: int = 200, **values: object) -> HTMLResponse:
    """`prefix` begins every link, because a proxy may serve mam under a path."""
    text = environment().get_template(template).render(prefix=server.settings.path_prefix, **values)
    return HTMLResponse(text, status)
