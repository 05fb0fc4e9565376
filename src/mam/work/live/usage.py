"""What a turn of a live session took: tokens, and the cost if the agent reports it.

Claude Code and Codex write tokens into their transcripts, OpenCode's plugin reports them when the turn ends. The hooks
name the transcript, and the agent can call hooks itself, so the file is read as carefully as any that an agent writes.
"""

from __future__ import annotations

import glob
import os
import stat
from itertools import islice

from mam.agent_table import agent_kind, load
from mam.work.reports.line_buffer import LineBuffer
from mam.work.reports.report import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.agents.turns import Turn
    from mam.jobs.record import Json

SIZE_LIMIT = 1 << 28
"""A larger transcript is not read."""
_MOST_SUBAGENTS = 1000
_PART = 1 << 18
_FACTS = ("tokens", "cost_usd", "cost_from")


def turn_cost(tool: str, transcript: str, turn: Turn, prices: Json | None) -> Json:
    """For `run.agent`; empty if it is unknown."""
    report = Report()
    if turn.usage:
        _add_reported(turn.usage, report)
    elif (target := agent_kind(tool).usage) and transcript:
        names = {turn.name, *turn.continued_as}
        for path in _files(transcript):
            load(target)(_lines(path), names, report)
    found = report.to_json(prices)
    return {name: found[name] for name in _FACTS if name in found}


def _add_reported(usage: str, report: Report) -> None:
    for word in usage.split():
        name, _, number = word.partition("=")
        try:
            value = float(number)
        except ValueError:
            continue
        if name == "cost":
            report.cost(value)
        elif name in ("input", "cached", "output") and value.is_integer():
            report.count(**{name: int(value)})


def _files(transcript: str) -> Iterator[str]:
    """The transcript, and those of subagents, which Claude Code writes into a directory beside it."""
    if "\0" in transcript:
        return
    yield transcript
    beside = os.path.join(transcript.removesuffix(".jsonl"), "subagents")
    yield from islice(glob.iglob(os.path.join(glob.escape(beside), "*.jsonl")), _MOST_SUBAGENTS)


def _lines(path: str) -> Iterator[bytes]:
    """The lines of a plain file of this user; none if it is something else or too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size > SIZE_LIMIT:
            return
        buffer, left = LineBuffer(), SIZE_LIMIT
        while left > 0 and (part := os.read(descriptor, _PART)):
            left -= len(part)
            yield from buffer.feed(part)
    except OSError:
        return
    finally:
        os.close(descriptor)
