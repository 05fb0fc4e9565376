"""One request to the API: who calls, with which parameters, and what is answered."""

from __future__ import annotations

import hashlib

from starlette.responses import Response

from mam.util.encoding import to_bytes
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from starlette.requests import Request

    from mam.access.registry import AuthorizedRegistry
    from mam.access.viewer import Viewer
    from mam.jobs.record import Json
    from mam.serve.server import Server


class Call:
    """The parameters are checked before a handler sees them."""

    def __init__(self, server: Server, request: Request, viewer: Viewer, given: Json, body: Json) -> None:
        self.server = server
        self.request = request
        self.viewer = viewer
        self.rights: AuthorizedRegistry = server.rights_of(viewer)
        self.given = given
        """The parameters of path, query and headers, by name."""
        self.body = body

    def get(self, name: str, default: Any = None) -> Any:
        """A parameter, or the default if it was not given."""
        return self.given.get(name, default)

    @property
    def job(self) -> str:
        name: str = self.given["job"]
        return name

    @property
    def prefix(self) -> str:
        return self.server.settings.path_prefix


class Answer(Frozen):
    body: Any = None
    """Sent as JSON; bytes are sent as they are."""
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012
    media_type: str = "application/json"

    def to_response(self) -> Response:
        if self.body is None and self.status == 204:
            return Response(status_code=204, headers=self.headers)
        data = self.body if isinstance(self.body, bytes) else to_bytes(self.body)
        return Response(data, self.status, headers=self.headers, media_type=self.media_type)


def etag_of(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()[:32]}"'
