"""Bytes on their way to a file: JSON as text that every file takes, and all of it."""

from __future__ import annotations

import json
import os
from json.encoder import encode_basestring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_compact_ascii = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_spaced = json.JSONEncoder(ensure_ascii=False).encode


def to_bytes(value: object) -> bytes:
    """JSON as UTF-8, for what mam reads again: as short as it can be, and without NaN, which others do not read.

    Half a surrogate pair cannot be UTF-8, so text that holds one is escaped instead.
    """
    try:
        return _compact(value).encode()
    except UnicodeEncodeError:
        return _compact_ascii(value).encode()


def to_log_bytes(value: object) -> bytes:
    """The same for what people read and search; a log takes what it is given, NaN too."""
    try:
        return _spaced(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def field_by_line(fields: dict[str, Any], encode: Callable[[object], bytes]) -> bytes:
    """An object with one field a line. Python's own indentation leaves its C encoder unused, and so does a call of it
    for each of half a hundred fields, most of which are nothing, a number or a word."""
    try:
        lines = [f"  {encode_basestring(name)}: {_plain(value, encode)}" for name, value in fields.items()]
        return "{{\n{}\n}}\n".format(",\n".join(lines)).encode()
    except UnicodeEncodeError:
        each = [b"  %s: %s" % (encode(name), encode(value)) for name, value in fields.items()]
        return b"{\n%s\n}\n" % b",\n".join(each)


def _plain(value: object, encode: Callable[[object], bytes]) -> str:
    if value is None:
        return "null"
    if type(value) is str:
        return encode_basestring(value)
    return str(value) if type(value) is int else encode(value).decode()


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
