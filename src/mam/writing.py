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
_NEXT = ",\n  "
_by_line = json.JSONEncoder(ensure_ascii=False, separators=(_NEXT, ": ")).encode


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
    """An object with one field a line. Python's own indentation leaves its C encoder unused, so runs of plain fields,
    which are most of them, are written by it at once, with the end of a line in the place of a comma."""
    try:
        lines: list[str] = []
        plain: dict[str, Any] = {}
        for name, value in fields.items():
            if not value or isinstance(value, (str, int)):
                plain[name] = value
                continue
            if plain:
                lines.append(_by_line(plain)[1:-1])
                plain = {}
            lines.append(f"{encode_basestring(name)}: {encode(value).decode()}")
        if plain:
            lines.append(_by_line(plain)[1:-1])
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
