"""Renders templates. Everything that a template prints is escaped."""

from __future__ import annotations

import hashlib
import os
import shlex
from functools import lru_cache
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from mam.serve.pages.static_files import STATIC
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from starlette.requests import Request

    from mam.serve.server import Server

TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")
THEMES = ("light", "dark")
THEME_COOKIE = "mam-theme"


@lru_cache(1)
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    made.filters["path"] = quote
    made.filters["query"] = lambda text: quote(text, safe="")
    made.filters["shell"] = shlex.quote
    made.filters["shown"] = one_line
    return made


def render(server: Server, request: Request, template: str, *, status: int = 200, **values: object) -> HTMLResponse:
    """`url` begins every link, because a proxy may serve mam under a path."""
    text = environment().get_template(template).render({**_shared(server, request), **values})
    return HTMLResponse(text, status)


def _shared(server: Server, request: Request) -> dict[str, Any]:
    """What every template may use; a page of a viewer replaces the empty values."""
    from mam.serve.login import csrf_token

    prefix = server.settings.path_prefix
    theme = request.cookies.get(THEME_COOKIE, "")
    return {
        "prefix": prefix, "url": lambda path: f"{prefix}{path}", "static": lambda name: _versioned(prefix, name),
        "csrf_token": csrf_token(server, request), "theme": theme if theme in THEMES else "",
        "address": _address(request, prefix), "own_host": os.uname().nodename, "viewer": None, "here": "", "find": "",
        "note": None, "waiting": 0, "can_answer": False, "is_admin": False, "events_url": "",
    }  # fmt: skip


def _address(request: Request, prefix: str) -> str:
    """The path and query of this page, to come back to."""
    query = request.url.query
    path = request.url.path.removeprefix(prefix) or "/"
    return f"{path}?{query}" if query else path


def _versioned(prefix: str, name: str) -> str:
    """Browsers keep a file with a version for good; a new mam has other versions."""
    return f"{prefix}/static/{name}?v={_digest(name)}"


@lru_cache(64)
def _digest(name: str) -> str:
    with open(os.path.join(STATIC, name), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:12]
