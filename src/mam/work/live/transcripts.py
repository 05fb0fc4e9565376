"""Reads an agent's own transcript: whether it contains our prompt, which is the second best proof that a turn has
begun, and how a Codex turn ended if no hook reported it.

mam reads only the ends of recently changed files. A hook names the file; otherwise mam looks in the agent's default
directory.
"""

from __future__ import annotations

import os
import stat
import time
from glob import iglob
from itertools import islice

from mam.agent_table import agent_kind
from mam.agents.hook_events import TEXT_LIMIT
from mam.jobs.activity import PROTOCOL
from mam.util.strict_json import safe_json
from mam.work.reports.problems import kind_of
from mam.work.reports.report import BILLING, LIMIT, LOGIN, OVERLOAD, get_path, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

TAIL = 512 * 1024
RECENT_SECONDS = 600.0
CODEX = "codex"
_MOST = 5000
_FAILURES = {
    LIMIT: "rate_limit", OVERLOAD: "overloaded", LOGIN: "authentication_failed", BILLING: "billing_error",
}  # fmt: skip
"""The name that a hook gives to each kind."""


def transcript_has(mark: str, tool: str, known: str = "") -> bool:
    paths = [known] if known else []
    paths += islice(iglob(_pattern(tool), recursive=True), _MOST) if _pattern(tool) else []
    return any(mark.encode() in _tail(path) for path in paths)


def end_in_transcript(tool: str, path: str, turn: str) -> Json | None:
    """The end of this turn, as a hook would report it. Codex calls no hook for a turn that its vendor rejected."""
    if tool != CODEX or not path or not turn:
        return None
    for line in reversed(_tail(path).split(b"\n")):
        if b'"task_complete"' in line and turn.encode() in line and (end := _parse_end(line, turn)) is not None:
            return end
    return None


def _parse_end(line: bytes, turn: str) -> Json | None:
    try:
        payload = get_path(safe_json(line), "payload")
    except ValueError:
        return None
    if get_path(payload, "type") != "task_complete" or get_path(payload, "turn_id") != turn:
        return None
    end: Json = {"agent": CODEX, "turn": turn, "by": PROTOCOL}
    said, error = get_path(payload, "last_agent_message"), get_path(payload, "error")
    if error is None:
        return {**end, "hook_event_name": "Stop", "text": said[-TEXT_LIMIT // 4 :] if isinstance(said, str) else None}
    text = one_line(get_path(error, "message")) or ""
    return {**end, "hook_event_name": "StopFailure", "error": _FAILURES.get(kind_of(text), "error"), "text": text}


def _pattern(tool: str) -> str:
    kind = agent_kind(tool)
    return os.path.join(kind.home(), kind.transcripts) if kind.transcripts else ""


def _tail(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or time.time() - found.st_mtime > RECENT_SECONDS:
            return b""
        os.lseek(descriptor, max(0, found.st_size - TAIL), os.SEEK_SET)
        parts = []
        while chunk := os.read(descriptor, 1 << 16):
            parts.append(chunk)
            if len(parts) > 2 * TAIL >> 16:
                break
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
