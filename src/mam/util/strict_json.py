"""The parser for JSON that mam did not write. For any input it returns a value or raises ValueError.

It limits the depth before it parses, so that neither the parser nor later code overflows the stack. It refuses what
programs read differently: NaN, and numbers that no float holds. `strict_json` also refuses duplicate names;
`safe_json` keeps the last value, because other vendors' programs may write duplicates.
"""

from __future__ import annotations

import json
from itertools import accumulate, chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEPTH_LIMIT = 100
"""Levels: more than any supported program writes, and few enough for every parser's stack."""
DIGITS_LIMIT = 300
"""An integer with more digits does not fit into a float."""
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


class UnsafeJson(ValueError):
    """Input that some programs do not accept as JSON, or read differently."""


class DuplicateName(UnsafeJson):
    """An object has the same name twice."""


def strict_json(data: bytes, depth: int = DEPTH_LIMIT) -> Any:
    """ValueError when the bytes are not JSON, UnsafeJson when programs disagree about them."""
    return _parse_strict(_check_depth(data.decode(), depth))


def safe_json(data: bytes | str) -> Any:
    """As `strict_json`, but of a duplicate name the last value counts."""
    return _parse_lenient(_check_depth(data if isinstance(data, str) else data.decode("utf-8-sig"), DEPTH_LIMIT))


def is_deeper(value: Any, limit: int) -> bool:
    """Whether a parsed value has more levels than the limit; not recursive, so that any depth is safe."""
    level = [value]
    while limit and level:
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, (dict, list))]
        level = list(chain.from_iterable(inner))
        limit -= 1
    return any(isinstance(item, (dict, list)) for item in level)


def _check_depth(text: str, depth: int) -> str:
    """The text, if it is not too deep. Only brackets outside of strings count."""
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
    """JSON allows 1e999, which few programs can read."""
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
