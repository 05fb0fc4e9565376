"""Follows the journal and notifies browsers of questions and failures while the server runs."""

from __future__ import annotations

from mam.errors import MamError
from mam.jobs.status import ERROR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.serve.hub import JobChange
    from mam.serve.server import Server

LEAST_SECONDS, LONGEST_SECONDS = 1.0, 3600.0
"""Between two looks."""
AGAIN_SECONDS = 60.0
"""After a problem of the store, or while the extra `push` is missing."""


async def notify_browsers(server: Server) -> None:
    hub = server.hub
    number, due = hub.last, hub.loop.time()
    while not hub.is_stopped:
        looked = hub.loop.time()
        if due <= looked:
            due = looked + await _send(server)
        await hub.wait(max(0.0, due - hub.loop.time()))
        changes, number = hub.after(number), hub.last
        if changes is None or any(map(_is_telling, changes)):
            due = min(due, looked + LEAST_SECONDS)


async def _send(server: Server) -> float:
    """Returns the seconds until the next attempt, unless the journal asks for one before."""
    try:
        left = await server.call(server.sender.send_due)
    except (MamError, OSError):
        return AGAIN_SECONDS
    return LONGEST_SECONDS if left is None else min(max(left, LEAST_SECONDS), LONGEST_SECONDS)


def _is_telling(change: JobChange) -> bool:
    return change.status == ERROR or "asked" in change.history
