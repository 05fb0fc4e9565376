"""What a request gets: a result at once, a result later, or a stream of notifications."""

from __future__ import annotations

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.mcp.messages import Id, Json


class Parked(Frozen):
    """A request that waits for jobs. The transport calls `check` after every change of one of them."""

    jobs: frozenset[str]
    seconds: float
    check: Callable[[bool], Json | None]
    """The result, or None to go on waiting. With True the time is over, and there is always a result."""


class Listening(Frozen):
    """A stream of notifications, which lasts until the client ends it."""

    subscription: Id
    jobs: frozenset[str]
    opening: Json
    """The first notification, which says what the server agreed to."""
    changed: Callable[[str], list[Json]]
    """The notifications after a change of this job."""
    closing: Json
    """The result that ends the stream when the server stops."""


class Watching(Frozen):
    """A client with a handshake wants to hear of changes of a resource, or no longer: then `job` is None."""

    uri: str
    job: str | None
    result: Json
