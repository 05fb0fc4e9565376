"""One frame of the journal: a line of text that carries its own checksum.

    89abcdef [{"number":7,"job_id":"…","fields":{…},"lines":[…]}]

All entries of one act are in one frame, so they are all there or none is.
"""

from __future__ import annotations

import json
from zlib import crc32

from mam.writing import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_decode = json.JSONDecoder().decode


def frame(payload: object) -> bytes:
    body = to_bytes(payload)
    return b"%08x %s\n" % (crc32(body), body)


def unframe(line: bytes) -> Any | None:
    """What the frame carries, or None when it is not whole."""
    if len(line) < 11 or line[8:9] != b" " or line[-1:] != b"\n":
        return None
    body = line[9:-1]
    try:
        if int(line[:8], 16) != crc32(body):
            return None
        return _decode(body.decode())
    except ValueError:
        return None
