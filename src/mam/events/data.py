"""Parses and checks the `data` of an event from outside."""

from __future__ import annotations

from mam.errors import BadInput
from mam.events.event import check_data
from mam.util.strict_json import UnsafeJson, is_deeper, safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEPTH_LIMIT = 64
"""Levels of nesting; few enough for every parser's stack."""


def parse_data(text: str) -> dict[str, Any]:
    try:
        data = safe_json(text)
    except UnsafeJson as doubt:
        raise BadInput(why=f"--data is refused: {doubt}") from None
    except ValueError:
        data = None
    return check_nested_data(data)


def check_nested_data(data: object) -> dict[str, Any]:
    """Checks that it is an object, is not nested too deeply, and can be encoded as JSON."""
    if not isinstance(data, dict):
        raise BadInput(why="--data must be a JSON object, such as '{\"percent\": 50}'")
    if is_deeper(data, DEPTH_LIMIT):
        raise BadInput(why=f"--data is nested more than {DEPTH_LIMIT} levels deep")
    return check_data(data)
