"""The format of an event, and the rules for its content."""

from __future__ import annotations

import json
import re

from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA_VERSION = 1

STARTED, PERMISSION_REQUIRED, PROGRESS = "started", "permission_required", "progress"
COMPLETED, ERROR = "completed", "error"
EVENTS = (STARTED, PERMISSION_REQUIRED, PROGRESS, COMPLETED, ERROR)

DETAIL_LIMIT = 2000
SHORTEST_KEY = 15
"""A shorter text cannot contain a key: a mark and twelve characters."""

_NAME = r"[^\s/\"'`:,;)]"
_ABSOLUTE_PATH = (
    # A path begins at a file address, outside of words and other addresses, after a colon, or after an option's letter.
    rf"(?:\bfile:/+|(?<![\w.~/:])(?:~[\w.-]*)?/+|(?<=:)/(?!/)|(?<=\s-[A-Za-z])/+)(?:{_NAME}+/+)+({_NAME}*)"
)
_KEY_MARKS = ("sk-", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xox", "AKIA", "AIza", "eyJ", "earer ")
_KEY = (
    # Keys that are recognised by their prefix.
    r"(?:sk-|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|eyJ)[A-Za-z0-9_.=-]{12,}"
    r"|(?<=earer )[A-Za-z0-9_.~+/=-]{12,}"
)
_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode
_NUL = r"\u0000"
_CONTROL = r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+"
"""Includes halves of surrogate pairs, into which Python decodes bytes that are not UTF-8."""


def check_event(name: str) -> str:
    if name not in EVENTS:
        raise BadInput(why=f"{name[:40]!r} is not an event; choose from {', '.join(EVENTS)}")
    return name


def check_data(data: dict[str, Any]) -> dict[str, Any]:
    """Refuses what JSON or a store cannot hold: NaN, invalid UTF-8, NUL."""
    try:
        text = _encode(data)
        text.encode()  # fails for half a surrogate pair
    except (TypeError, ValueError, RecursionError):
        raise BadInput(why="the data of an event must be a JSON object in UTF-8, without NaN or Infinity") from None
    if _NUL in text and _has_nul(json.loads(text)):
        raise BadInput(why="the data of an event contains a NUL character")
    return data


def _has_nul(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_nul, (*value, *value.values())))
    return "\0" in value if isinstance(value, str) else isinstance(value, list) and any(map(_has_nul, value))


def event_payload(
    seq: int, job_id: str, event: str, timestamp: str, detail: str, data: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The payload, in the order of docs/protocol.md."""
    return {
        "schema_version": SCHEMA_VERSION,
        "seq": seq,
        "job_id": job_id,
        "event": event,
        "timestamp": timestamp,
        "detail": redact(detail),
        "data": data or {},
    }


def redact(detail: str) -> str:
    """One line without absolute paths and keys, because an event may be sent to other machines."""
    if len(detail) < SHORTEST_KEY and detail.isalnum():
        return detail  # a single word contains neither
    # The patterns are compiled only when they could match, because most lines contain neither.
    line = (detail if detail.isprintable() else re.sub(_CONTROL, " ", detail)).strip()
    if len(line) >= SHORTEST_KEY and any(mark in line for mark in _KEY_MARKS):
        line = re.sub(_KEY, "…", line)
    return re.sub(_ABSOLUTE_PATH, r"…/\1", line)[:DETAIL_LIMIT] if "/" in line else line[:DETAIL_LIMIT]
