"""The one reader of JSON that mam did not write itself. Whatever the input is, the answer is a value or a ValueError.

It limits the depth before it parses, so that neither the parser nor any code that walks the value later runs out of
stack. It refuses what programs read differently: NaN, and numbers that no float holds. `strict_json` also refuses two
values for one name; `safe_json` keeps the last of them, since other vendors' programs may write that.
"""

from __future__ import annotations

import json
from itertools import accumulate, chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEPTH_LIMIT = 100
"""Levels: more than any program that mam listens to writes, and few enough for every reader's stack."""
DIGITS_LIMIT = 300
"""A whole number with more digits does not fit into a float either."""
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


class UnsafeJson(ValueError):
    """JSON to some; the text says what others would not read, or read differently."""


class DuplicateName(UnsafeJson):
    """Two values for one name in one object."""


def strict_json(data: bytes, depth: int = DEPTH_LIMIT) -> Any:
    """A ValueError when the bytes are no JSON, UnsafeJson when only some programs would call them that."""
    return _parse_strict(_check_depth(data.decode(), depth))


def safe_json(data: bytes | str) -> Any:
    """The same, with the last value of a name that an object has twice."""
    return _parse_lenient(_check_depth(data if isinstance(data, str) else data.decode("utf-8-sig"), DEPTH_LIMIT))


def is_deeper(value: Any, limit: int) -> bool:
    """Whether a value that is already parsed has more levels. Level by level, so that no depth is too much for it."""
    level = [value]
    while limit and level:
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, (dict, list))]
        level = list(chain.from_iterable(inner))
        limit -= 1
    return any(isinstance(item, (dict, list)) for item in level)


def _check_depth(text: str, depth: int) -> str:
    """The text. A bracket counts outside of strings only; those end at a quote that no backslash precedes."""
    if text.count("[") + text.count("{") > depth:
        outside = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
        if max(accumulate(_STEPS[letter] for letter in outside if letter in _STEPS), default=0) > depth:
            raise UnsafeJson(f"it is nested more than {depth} levels deep")
    return text


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise DuplicateName("it has a name twice in one object")
    return made


def _reject_constant(word: str) -> Any:
    raise UnsafeJson(f"it holds {word}, which is no JSON")


def _finite(word: str) -> float:
    """1e999 is a number to JSON, and to few programs that read it."""
    number = float(word)
    if number in (float("inf"), float("-inf")):
        raise UnsafeJson("it holds a number that is too large")
    return number


def _whole(word: str) -> int:
    if len(word) > DIGITS_LIMIT:
        raise UnsafeJson("it holds a number that is too large")
    return int(word)


_parse_strict = json.JSONDecoder(
    object_pairs_hook=_unique_names, parse_constant=_reject_constant, parse_float=_finite, parse_int=_whole
).decode
_parse_lenient = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_finite, parse_int=_whole).decode
