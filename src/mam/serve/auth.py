"""How a request says who it is: a token in `Authorization: Bearer`, or the cookie of a browser."""

from __future__ import annotations

import asyncio

from mam.errors import MamError, NotLoggedIn
from mam.serve.problems import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import HTTPConnection

    from mam.access.viewer import Viewer
    from mam.serve.server import Server

LOOK_SECONDS = 15.0
"""How often a long answer looks whether its token is still valid."""


def credentials_of(server: Server, request: HTTPConnection) -> tuple[str | None, str | None]:
    """The token and the session. A request with both is judged by its token."""
    header = request.headers.get("authorization")
    if header is None:
        return None, request.cookies.get(server.cookie_name)
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotLoggedIn(why="Send the token as `Authorization: Bearer TOKEN`.")
    return token.strip(), None


def viewer_of(server: Server, request: HTTPConnection) -> Viewer | None:
    """For pages, which show the log-in to everybody else. It blocks."""
    try:
        return server.find_viewer(*credentials_of(server, request))
    except NotLoggedIn:
        return None


def caller_of(server: Server, request: HTTPConnection) -> str:
    """For limits only. A proxy in front appends the address that it saw; the others come from the caller."""
    if server.settings.behind_proxy:
        seen = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
        if seen:
            return seen[:60]
    return "" if request.client is None else request.client.host


def note_failure(server: Server, request: HTTPConnection) -> Problem | None:
    """Counts an invalid token. Returns the answer for a caller that sent too many. A valid token of the same address is
    never refused: others may share the address."""
    if "authorization" not in request.headers:
        return None
    caller = caller_of(server, request)
    left = server.failed_tokens.seconds_left(caller)
    if not left:
        server.failed_tokens.note(caller)
        return None
    why = f"Too many invalid tokens came from this address; try again in {left} s."
    return Problem(429, why, headers={"retry-after": str(left)})


class LogInWatch:
    """A long answer ends with its token, also if it never falls silent."""

    def __init__(self, server: Server, find: Callable[[], Viewer]) -> None:
        """`find` raises NotLoggedIn when the log-in has ended. It blocks."""
        self._server = server
        self._find = find
        self._due = asyncio.get_running_loop().time() + LOOK_SECONDS

    async def has_ended(self) -> bool:
        """Looks only when it is due, so that a stream can ask as often as it likes."""
        now = asyncio.get_running_loop().time()
        if now < self._due:
            return False
        self._due = now + LOOK_SECONDS
        try:
            await self._server.call(self._find)
        except MamError:
            return True
        return False


def log_in_watch(server: Server, request: HTTPConnection) -> LogInWatch:
    return LogInWatch(server, lambda: server.find_viewer(*credentials_of(server, request)))
