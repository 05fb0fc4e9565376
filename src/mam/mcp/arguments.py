"""Checks the arguments of a tool against its input schema: the part of JSON Schema that mam's tools use. Pure.

A wrong argument is an error that the model can correct, so each message says what the tool takes.
"""

from __future__ import annotations

from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.mcp.messages import Json

LIST_LIMIT = 200
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,),
}  # fmt: skip
_WORDS = {
    "string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "array": "a list of texts",
}  # fmt: skip


def check_arguments(schema: Json, given: object) -> Json:
    """The arguments without those that are null, which many models send for "none"."""
    if not isinstance(given, dict):
        raise BadInput(why="the arguments are a JSON object")
    properties: Json = schema["properties"]
    if unknown := given.keys() - properties.keys():
        raise BadInput(why=f"there is no argument {min(unknown)[:40]!r}; there are {', '.join(properties)}")
    arguments = {name: value for name, value in given.items() if value is not None}
    for name in schema.get("required", ()):
        if name not in arguments:
            raise BadInput(why=f"the argument {name} is missing")
    for name, value in arguments.items():
        _check(name, properties[name], value)
    return arguments


def _check(name: str, schema: Json, value: object) -> None:
    kind = schema["type"]
    if not _has_type(value, kind) or (isinstance(value, list) and not all(isinstance(item, str) for item in value)):
        raise BadInput(why=f"{name} must be {_WORDS[kind]}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", LIST_LIMIT):
            raise BadInput(
                why=f"{name} takes {schema.get('minItems', 0)} to {schema.get('maxItems', LIST_LIMIT)} texts"
            )
        for item in value:
            _check_choice(name, schema.get("items", {}), item)
    elif isinstance(value, str):
        _check_choice(name, schema, value)
    elif isinstance(value, int | float):
        _check_range(name, schema, value)


def _has_type(value: object, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _check_choice(name: str, schema: Json, word: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError:  # JSON can write half of a character, which no store can hold
        raise BadInput(why=f"{name} is not valid UTF-8") from None
    choices = schema.get("enum")
    if choices is not None and word not in choices:
        raise BadInput(why=f"{name} takes {', '.join(choices)}, not {word[:40]!r}")


def _check_range(name: str, schema: Json, number: float) -> None:
    least, most = schema.get("minimum"), schema.get("maximum")
    if (least is not None and number < least) or (most is not None and number > most):
        raise BadInput(why=f"{name} must be between {least} and {most}, not {number}")
