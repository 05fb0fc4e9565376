"""Encodes values as JSON, and writes bytes completely."""

from __future__ import annotations

import json
import os
from itertools import compress
from json.encoder import encode_basestring

from mam.util.frozen import FrozenDict, FrozenList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _encoder(item_separator: str, key_separator: str, *, allow_nan: bool = True) -> Callable[[object], str]:
    """As `JSONEncoder.encode`, which creates its C encoder at every call; an act encodes several values."""
    separators = (item_separator, key_separator)
    python = json.JSONEncoder(ensure_ascii=False, allow_nan=allow_nan, check_circular=False, separators=separators)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return python.encode
    parts = make(None, python.default, encode_basestring, None, key_separator, item_separator, False, False, allow_nan)
    return lambda value: "".join(parts(value, 0))


_NEXT = ",\n  "
to_json_text = _encoder(",", ":", allow_nan=False)
"""Compact JSON for mam to read again; NaN is refused, because other programs cannot read it."""

_spaced = _encoder(", ", ": ")
_by_line = _encoder(_NEXT, ": ")
_has_parts = dict.fromkeys((dict, list, tuple, float, FrozenDict, FrozenList), True).get
"""Floats are included, because only the caller's encoder decides about NaN."""


def to_bytes(value: object) -> bytes:
    """Compact JSON in UTF-8. Text with half a surrogate pair, which UTF-8 cannot hold, is escaped."""
    try:
        return to_json_text(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def to_log_bytes(value: object) -> bytes:
    """JSON for logs that people read, with spaces; NaN is accepted."""
    try:
        return _spaced(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def encode_by_line(fields: dict[str, Any], encode: Callable[[object], bytes]) -> bytes:
    """An object with one field a line. Python's `indent` does not use the C encoder. So the C encoder writes all plain
    fields at once with a line break as separator, and the nested fields are inserted after that. No text contains the
    separator, because a line break in a text is escaped."""
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
    """Repeats a partial write until all bytes are written."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def close_quietly(descriptor: int) -> None:
    """For a file that has been synced or need not be: an error of close has no meaning then."""
    try:
        os.close(descriptor)
    except OSError:
        pass
