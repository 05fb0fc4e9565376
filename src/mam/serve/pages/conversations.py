"""Reads the part of an attempt's output that a page shows, as items of its conversation."""

from __future__ import annotations

import os

from mam.agent_table import agent_kind, load
from mam.conversation.reader import PlainReader, read_all
from mam.serve.pages.conversation_blocks import last_said
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.access.reading import AuthorizedReading
    from mam.conversation.items import Item
    from mam.conversation.reader import ConversationReader
    from mam.jobs.record import Job
    from mam.registry import Registry

WINDOW, SENTENCE_WINDOW = 256 << 10, 64 << 10
"""Bytes of output that a page reads for a conversation, and for the agent's last sentence."""


class Window(Frozen):
    """Some whole lines of an output."""

    data: bytes
    start: int
    """The offset of the first byte; 0 if nothing precedes it."""
    end: int
    size: int
    """Of the whole output."""

    @property
    def is_last(self) -> bool:
        return self.end >= self.size


def output_window(reading: AuthorizedReading, job: Job, attempt: int, end: int | None = None) -> Window | None:
    """What ends before byte `end`, or at the end of the output; None if there is no output."""
    return _window(reading.registry, reading.get(job.job_id), attempt, end, WINDOW) if attempt else None


def items_of(job: Job, window: Window) -> Iterator[Item]:
    """The items of a window. An item that began before it may lack its beginning."""
    reader = reader_of(job.agent) or PlainReader()
    return reader.feed(window.data) if not (window.is_last and job.status.ended) else read_all(reader, [window.data])


def reader_of(agent: str) -> ConversationReader | None:
    """None if the output of this agent has no structure."""
    target = agent_kind(agent).conversation
    if not target:
        return None
    made: ConversationReader = load(target)()
    return made


def last_sentence(reading: AuthorizedReading, job: Job) -> str:
    """What the agent said last, as one line."""
    if not job.attempt or reader_of(job.agent) is None:
        return ""
    window = _window(reading.registry, job, job.attempt, None, SENTENCE_WINDOW)
    return last_said(items_of(job, window)) if window is not None else ""


def output_size(reading: AuthorizedReading, job: Job, known: int = 0) -> int:
    """How long the output is, to find out whether a page has to be drawn again. Of an output in the store, only what
    comes behind the `known` part is read."""
    from mam.work.output_log import length
    from mam.work.output_source import local_log

    log = local_log(reading.registry, job.job_id, job.attempt)
    if os.path.exists(log):
        return length(log)
    pieces = reading.registry.store.outputs.read(job.job_id, job.attempt, known)
    return max((piece.end for piece in pieces), default=known)


def _window(registry: Registry, job: Job, attempt: int, end: int | None, most: int) -> Window | None:
    parts = _local(registry, job, attempt, end, most)
    if parts is None:
        parts = _stored(registry, job, attempt, end, most)
    if parts is None:
        return None
    data, start, until, size = parts
    if start > 0:  # the first line is incomplete, unless it is longer than the window
        cut = data.find(b"\n") + 1
        if cut < len(data):
            data, start = data[cut:], start + cut
    return Window(data=data, start=start, end=until, size=size)


def _local(
    registry: Registry, job: Job, attempt: int, end: int | None, most: int
) -> tuple[bytes, int, int, int] | None:
    from mam.work.output_log import length, read
    from mam.work.output_source import local_log

    log = local_log(registry, job.job_id, attempt)
    if not os.path.exists(log):
        return None
    size = length(log)
    until = size if end is None else min(end, size)
    start, parts, read_so_far = max(0, until - most), list[bytes](), 0
    for part in read(log, start):
        parts.append(part)
        read_so_far += len(part)
        if read_so_far >= until - start:
            break
    return b"".join(parts)[: until - start], start, until, size


def _stored(
    registry: Registry, job: Job, attempt: int, end: int | None, most: int
) -> tuple[bytes, int, int, int] | None:
    """From the store, which bounds what it keeps of an output. Missing bytes leave a gap."""
    pieces = list(registry.store.outputs.read(job.job_id, attempt))
    if not pieces:
        return None
    size = pieces[-1].end
    until = size if end is None else min(end, size)
    start = max(0, until - most)
    kept = [piece for piece in pieces if piece.end > start and piece.start < until]
    data = b"".join(piece.data[max(0, start - piece.start) : until - piece.start] for piece in kept)
    return data, start, until, size
