"""Streams of server-sent events. A stream holds a position and no queue: a slow reader costs nothing but its
connection, which is closed when it reads nothing for a while."""

from __future__ import annotations

import asyncio

from starlette.responses import StreamingResponse

from mam.serve.auth import log_in_watch
from mam.serve.hub import position_text
from mam.serve.protocol import TRANSPORT
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.types import Message, Receive, Scope, Send

    from mam.serve.call import Call
    from mam.serve.hub import JobChange

KEEP_ALIVE_SECONDS = 15.0
SLOW_SECONDS = 30.0
"""A reader that takes nothing for so long is dropped."""
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_BATCH_BYTES = 1 << 16


class SlowReader(Exception):
    pass


class EventStream(StreamingResponse):
    """Sends each piece within a time."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(SLOW_SECONDS):
                    await send(message)
            except TimeoutError:
                raise SlowReader from None

        try:
            await super().__call__(scope, receive, send_in_time)
        except* SlowReader:
            transport = scope.get(TRANSPORT)
            if transport is not None:
                transport.abort()  # closing it would wait until the reader has taken what is buffered


class ChangeFilter(Frozen):
    """What a reader wants; an empty set means any."""

    jobs: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()
    statuses: frozenset[str] = frozenset()

    def matches(self, change: JobChange) -> bool:
        return (
            (not self.jobs or change.job_id in self.jobs)
            and (not self.labels or change.label in self.labels)
            and (not self.agents or change.agent in self.agents)
            and (not self.events or not self.events.isdisjoint(change.events))
            and (not self.statuses or change.status in self.statuses)
        )


def event_stream(
    call: Call, epoch: str, number: int, wanted: ChangeFilter, *, sees_all: bool, follows: bool
) -> EventStream:
    stream = _stream(call, epoch, number, wanted, sees_all=sees_all, follows=follows)
    return EventStream(stream, media_type="text/event-stream", headers=HEADERS)


async def _stream(
    call: Call, epoch: str, number: int, wanted: ChangeFilter, *, sees_all: bool, follows: bool
) -> AsyncIterator[bytes]:
    server, hub, loop = call.server, call.server.hub, asyncio.get_running_loop()
    upto = None if follows else await server.call(hub.end)
    yield b": mam\n\n"
    spoke, log_in = loop.time(), log_in_watch(server, call.request)
    while not hub.is_stopped and not await log_in.has_ended():
        if epoch != hub.epoch:
            epoch, number = hub.epoch, 0
            yield b"event: reset\ndata: {}\n\n"
        changes = hub.after(number) if follows else None
        if changes is None:
            changes = await server.call(hub.read, number)
            if not changes:
                number = max(number, hub.last)
        if changes:
            number = changes[-1].number
            found = [change for change in changes if wanted.matches(change)]
            if found and not sees_all:
                found = await server.call(_seen, call, found)
            for piece in _frames(found, epoch):
                yield piece
                spoke = loop.time()
        if upto is not None and (not changes or number >= upto):
            return
        if not changes and not await hub.wait(max(0.0, spoke + KEEP_ALIVE_SECONDS - loop.time())):
            # The id moves a reader of a rare event forward, so that it need not read everything again.
            yield f": keep-alive\nid: {position_text(epoch, number)}\n\n".encode()
            spoke = loop.time()


def _frames(changes: list[JobChange], epoch: str) -> Iterator[bytes]:
    """Several frames at once: each send costs a system call."""
    held = list[bytes]()
    size = 0
    for change in changes:
        frame = b"id: %b\nevent: change\ndata: %b\n\n" % (position_text(epoch, change.number).encode(), change.data)
        held.append(frame)
        size += len(frame)
        if size > _BATCH_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _seen(call: Call, changes: list[JobChange]) -> list[JobChange]:
    seen = {job_id: call.rights.may_see_id(job_id) for job_id in {change.job_id for change in changes}}
    return [change for change in changes if seen[change.job_id]]
