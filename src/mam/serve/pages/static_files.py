"""The files of the page, which browsers may keep: for good if the address names a version, otherwise after asking."""

from __future__ import annotations

from starlette.staticfiles import StaticFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from starlette.responses import Response
    from starlette.types import Scope

FOR_GOOD = "public, max-age=31536000, immutable"


class PageFiles(StaticFiles):
    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        has_version = scope["query_string"].startswith(b"v=")
        response.headers["cache-control"] = FOR_GOOD if has_version else "no-cache"
        return response
