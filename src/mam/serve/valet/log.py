"""The output of a job: its last lines, and a stream of them while it runs."""

from __future__ import annotations

from mam.errors import UnknownJob
from mam.serve.sse import HEADERS, EventStream
from mam.serve.valet.problem import ValetProblem
from mam.work.output_source import output_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mam.jobs.record import Job
    from mam.serve.auth import LogInWatch
    from mam.serve.server import Server

DEFAULT_LINES, LINES_LIMIT = 200, 100_000
LOOK_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 15.0
_PIECE = 1 << 18
"""Bytes of one step of a stream."""
_TAIL_LIMIT = 1 << 24
"""Bytes of the last lines; a client that wants more follows the log."""
_LONGEST_LINE = 1 << 20
"""A longer line is sent in parts, so that output without line ends does not fill the memory."""


def last_lines(server: Server, job: Job, lines: int) -> bytes:
    """It blocks."""
    source = output_of(server.registry, job.job_id, job.attempt)
    if not source.exists():
        raise ValetProblem(404, "Log not found")
    kept = b""
    for part in source.read(source.tail_start(min(lines, LINES_LIMIT))):
        kept = (kept + part)[-_TAIL_LIMIT:]
    return kept


def log_stream(server: Server, log_in: LogInWatch, job: Job, since: int) -> EventStream:
    return EventStream(_stream(server, log_in, job, since), media_type="text/event-stream", headers=HEADERS)


async def _stream(server: Server, log_in: LogInWatch, job: Job, since: int) -> AsyncIterator[bytes]:
    """One event a line, whose id is the offset of its end: a client that reconnects goes on there. The stream ends with
    the job."""
    attempt, lines, silent = job.attempt, _Lines(since), 0.0
    while not server.hub.is_stopped and not await log_in.has_ended():
        now = await server.call(_look_up, server, job.job_id)
        if now is None:
            return
        if now.attempt != attempt:  # a new attempt begins a new log
            attempt, lines = now.attempt, _Lines(0)
        parts = await server.call(_next_parts, server, now.job_id, attempt, lines.end)
        frames = [frame for end, data in parts for frame in lines.feed(data, end)]
        if not parts and now.status.ended:
            frames = lines.rest()
        if frames:
            silent = 0.0
            yield b"".join(frames)
        if not parts:
            if now.status.ended:
                return
            await server.hub.wait_for_job(now.job_id, server.hub.last, LOOK_SECONDS)
            silent += LOOK_SECONDS
        if silent >= KEEP_ALIVE_SECONDS:
            silent = 0.0
            yield b": keep-alive\n\n"


class _Lines:
    """Makes events of lines. A line without its end waits for the rest."""

    def __init__(self, since: int) -> None:
        self.end = since
        self._held = b""

    def feed(self, data: bytes, end: int) -> list[bytes]:
        """`data` ends at the offset `end`."""
        first, *others = data.split(b"\n")
        frames, whole, left = list[bytes](), self._held + first, len(data) - len(first)
        for line in others:
            left -= 1
            frames.append(_frame(whole, end - left))
            whole, left = line, left - len(line)
        if len(whole) >= _LONGEST_LINE:
            frames.append(_frame(whole, end))
            whole = b""
        self._held, self.end = whole, end
        return frames

    def rest(self) -> list[bytes]:
        return [_frame(self._held, self.end)] if self._held else []


def _look_up(server: Server, job_id: str) -> Job | None:
    try:
        return server.registry.get_exact(job_id)
    except UnknownJob:
        return None


def _next_parts(server: Server, job_id: str, attempt: int, since: int) -> list[tuple[int, bytes]]:
    """What follows, each part with the offset of its end; about one piece at once."""
    found, size = list[tuple[int, bytes]](), 0
    for end, data in output_of(server.registry, job_id, attempt).parts(since):
        found.append((end, data))
        size += len(data)
        if size >= _PIECE:
            break
    return found


def _frame(line: bytes, offset: int) -> bytes:
    """A carriage return would end a line of the stream too."""
    text = line.decode(errors="replace").rstrip("\r").replace("\r", " ")
    return f"id: {offset}\ndata: {text}\n\n".encode()
