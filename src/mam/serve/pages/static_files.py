"""The files of the page, which browsers may keep: for good if the address names a version, otherwise after asking."""

from __future__ import annotations

import os

from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

STATIC = os.path.join(os.path.dirname(os.path.dirname(__file__)), "static")
FOR_GOOD = "public, max-age=31536000, immutable"


class PageFiles(StaticFiles):
    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        has_version = scope["query_string"].startswith(b"v=")
        response.headers["cache-control"] = FOR_GOOD if has_version else "no-cache"
        return response


async def service_worker(_request: Request) -> Response:
    """At the root, because a service worker acts only for the addresses below its own."""
    path = os.path.join(STATIC, "sw.js")
    return FileResponse(path, media_type="text/javascript", headers={"cache-control": "no-cache"})
