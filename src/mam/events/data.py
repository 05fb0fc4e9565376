"""The `data` of an event as it comes from outside, before anything else looks at it."""

from __future__ import annotations

from itertools import chain

from mam.errors import BadInput
from mam.events.event import check_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEPTH_LIMIT = 64
"""Levels: far more than anyone means, and nothing that reads it later has to fear for its stack."""


def parse_data(text: str) -> dict[str, Any]:
    from mam.strict_json import safe_json

    try:
        data = safe_json(text)
    except ValueError:
        data = None
    return check_levels(data)


def check_levels(data: object) -> dict[str, Any]:
    """An object that is not nested too deeply, and that JSON can say."""
    if not isinstance(data, dict):
        raise BadInput(why="--data must be a JSON object, such as '{\"percent\": 50}'")
    if _is_deeper(data, DEPTH_LIMIT):
        raise BadInput(why=f"--data is nested more than {DEPTH_LIMIT} levels deep")
    return check_data(data)


def _is_deeper(value: Any, limit: int) -> bool:
    """Level by level, so that no depth is too much for it."""
    level = [value]
    while limit and level:
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, (dict, list))]
        level = list(chain.from_iterable(inner))
        limit -= 1
    return any(isinstance(item, (dict, list)) for item in level)
