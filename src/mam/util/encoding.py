"""Bytes on their way to a file: JSON as text that every file takes, and all of it."""

from __future__ import annotations

import json
import os
from itertools import compress
from json.encoder import encode_basestring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _encoder(item_separator: str, key_separator: str, *, allow_nan: bool = True) -> Callable[[object], str]:
    """What `JSONEncoder.encode` does, which makes its C half anew at every call; an act calls it half a dozen times."""
    separators = (item_separator, key_separator)
    python = json.JSONEncoder(ensure_ascii=False, allow_nan=allow_nan, check_circular=False, separators=separators)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return python.encode
    parts = make(None, python.default, encode_basestring, None, key_separator, item_separator, False, False, allow_nan)
    return lambda value: "".join(parts(value, 0))


_NEXT = ",\n  "
to_json_text = _encoder(",", ":", allow_nan=False)
"""JSON for what mam reads again: as short as it can be, and without NaN, which others do not read."""

_spaced = _encoder(", ", ": ")
_by_line = _encoder(_NEXT, ": ")
_has_parts = {dict: True, list: True, tuple: True, float: True}.get
"""A number is among them: whether it may be NaN is for the caller's encoder to say."""


def to_bytes(value: object) -> bytes:
    """JSON as UTF-8, for what mam reads again: as short as it can be, and without NaN, which others do not read.

    Half a surrogate pair cannot be UTF-8, so text that holds one is escaped instead.
    """
    try:
        return to_json_text(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def to_log_bytes(value: object) -> bytes:
    """The same for what people read and search; a log takes what it is given, NaN too."""
    try:
        return _spaced(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def encode_by_line(fields: dict[str, Any], encode: Callable[[object], bytes]) -> bytes:
    """An object with one field a line. Python's own indentation leaves its C encoder unused, so all fields are written
    by it at once, with the end of a line in the place of a comma; then those are put in their places that have such
    commas of their own. No text can hold that end: a line's end within a text is escaped."""
    try:
        deep = dict(compress(enumerate(fields), map(_has_parts, map(type, fields.values()))))
        lines = _by_line({**fields, **dict.fromkeys(deep.values())})[1:-1].split(_NEXT)
        for place, name in deep.items():
            lines[place] = f"{encode_basestring(name)}: {encode(fields[name]).decode()}"
        return f"{{\n  {_NEXT.join(lines)}\n}}\n".encode()
    except UnicodeEncodeError:
        each = [b"  %s: %s" % (encode(name), encode(value)) for name, value in fields.items()]
        return b"{\n%s\n}\n" % b",\n".join(each)


def write_all(descriptor: int, data: bytes) -> None:
    """One write, unless the disk takes only a part of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def close_quietly(descriptor: int) -> None:
    """For what has been synced, or need not be: an error tells nothing then, and a store may be dropped where nobody
    could hear of it."""
    try:
        os.close(descriptor)
    except OSError:
        pass
