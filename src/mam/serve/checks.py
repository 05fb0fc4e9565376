"""Checks values against the part of JSON Schema that the description of the API uses.

The description is the one source: what it does not allow, no route gets.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.jobs.record import Json

_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}
_SHOWN = 60


def check_value(value: object, schema: Json, name: str) -> None:
    """BadInput that names the first part which does not fit."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        raise BadInput(why=f"{name} must be {_article(kinds)}")
    if "enum" in schema and value not in schema["enum"]:
        choices = ", ".join(str(choice) for choice in schema["enum"])
        raise BadInput(why=f"{name} must be one of {choices}, not {str(value)[:_SHOWN]!r}")
    if isinstance(value, str):
        _check_text(value, schema, name)
    elif isinstance(value, list):
        _check_list(value, schema, name)
    elif isinstance(value, dict):
        _check_object(value, schema, name)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        _check_number(value, schema, name)


def whole_numbers(body: Json, schema: Json) -> Json:
    """The body with 5 for 5.0 where a whole number is wanted: in JSON both are the same number."""
    return {
        name: int(value) if _is_whole(value, schema.get("properties", {}).get(name, {})) else value
        for name, value in body.items()
    }


def _is_whole(value: object, schema: Json) -> bool:
    return schema.get("type") == "integer" and isinstance(value, float) and value.is_integer()


def _article(kinds: list[str]) -> str:
    words = {"integer": "a whole number", "object": "an object", "array": "a list", "null": "null", "string": "text"}
    return " or ".join(words.get(kind, f"a {kind}") for kind in kinds)


def _check_text(text: str, schema: Json, name: str) -> None:
    if len(text) < schema.get("minLength", 0):
        raise BadInput(why=f"{name} is empty")
    if len(text) > schema.get("maxLength", len(text)):
        raise BadInput(why=f"{name} has {len(text):,} characters; at most {schema['maxLength']:,} are taken")
    if "pattern" in schema and not _compiled(schema["pattern"]).search(text):
        raise BadInput(why=f"{name} {text[:_SHOWN]!r} does not match {schema['pattern']}")


def _check_number(number: float, schema: Json, name: str) -> None:
    least, most = schema.get("minimum", number), schema.get("maximum", number)
    if not least <= number <= most:
        raise BadInput(why=f"{name} must be between {schema.get('minimum', '-∞')} and {schema.get('maximum', '∞')}")


def _check_list(values: list[Any], schema: Json, name: str) -> None:
    if len(values) < schema.get("minItems", 0):
        raise BadInput(why=f"{name} is empty")
    if len(values) > schema.get("maxItems", len(values)):
        raise BadInput(why=f"{name} has {len(values):,} items; at most {schema['maxItems']:,} are taken")
    for at, value in enumerate(values):
        check_value(value, schema.get("items", {}), f"{name}[{at}]")


def _check_object(value: dict[str, Any], schema: Json, name: str) -> None:
    known = schema.get("properties", {})
    for needed in schema.get("required", ()):
        if needed not in value:
            raise BadInput(why=f"{_inside(name, needed)} is missing")
    for key, inner in value.items():
        if key in known:
            check_value(inner, known[key], _inside(name, key))
        elif schema.get("additionalProperties") is False:
            names = ", ".join(known) or "nothing"
            raise BadInput(why=f"{_inside(name, key[:_SHOWN])} is not known here; this takes {names}")


def _inside(name: str, key: str) -> str:
    return key if name == "the body" else f"{name}.{key}"


@lru_cache(256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


# -- parameters, which are text --------------------------------------------------------------------------------------


def parse_text(texts: list[str], schema: Json, name: str) -> Any:
    """The value of a parameter of a query, a path or a header. A list is repeated, or separated by commas."""
    if schema.get("type") == "array":
        value: Any = [part.strip() for text in texts for part in text.split(",")]
    elif len(texts) > 1:
        raise BadInput(why=f"{name} is given twice")
    else:
        value = _parse_one(texts[0], schema, name)
    check_value(value, schema, name)
    return value


def _parse_one(text: str, schema: Json, name: str) -> Any:
    kind = schema.get("type")
    if kind == "integer":
        if not re.fullmatch(r"-?[0-9]{1,18}", text):
            raise BadInput(why=f"{name} must be a whole number, not {text[:_SHOWN]!r}")
        return int(text)
    if kind == "number":
        if not re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", text):
            raise BadInput(why=f"{name} must be a number, not {text[:_SHOWN]!r}")
        return float(text)
    if kind == "boolean":
        if text not in ("true", "false"):
            raise BadInput(why=f"{name} must be true or false, not {text[:_SHOWN]!r}")
        return text == "true"
    return text
