"""JSON from somebody else, read only where all programs read the same: no name twice, no NaN, no endless number."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Doubtful(ValueError):
    """JSON to some; the text says what others would not read, or read differently."""


class NameTwice(Doubtful):
    """Two values for one name in one object."""


def strict_json(data: bytes) -> Any:
    """What the bytes say; a ValueError when they are no JSON, Doubtful when only some would call it that."""
    try:
        return _decode(data.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise NameTwice("it has a name twice in one object")
    return made


def _no_constant(word: str) -> Any:
    raise Doubtful(f"it holds {word}, which is no JSON")


def _finite(word: str) -> float:
    """1e999 is a number to JSON and to nobody else."""
    number = float(word)
    if number in (float("inf"), float("-inf")):
        raise Doubtful("it holds a number that nobody can hold")
    return number


_decode = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite).decode
