"""Remove escape sequences other than colours from an agent's output.

A sequence may be split between chunks; the filter keeps an incomplete one for the next chunk.
"""

from __future__ import annotations

import codecs
import re

# A title or device control ends at its terminator or at the next escape, as on a terminal. So the time is linear in the
# length of the text, whatever it contains.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\x9c]*[\x07\x9c]?|[ -/]*[0-~])")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]*|[ -/]*)\Z")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_KEPT_LIMIT = 4096


class EscapeFilter:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._kept = ""

    def filter(self, chunk: bytes) -> bytes:
        text = self._kept + self._decoder.decode(chunk)
        cut = _UNFINISHED.match(text, max(0, text.rfind("\x1b")))
        self._kept = "" if cut is None or len(text) - cut.start() > _KEPT_LIMIT else text[cut.start() :]
        whole = text[: len(text) - len(self._kept)]
        parts, end = [], 0
        for found in _SEQUENCE.finditer(whole):
            parts.append(_CONTROLS.sub("\ufffd", whole[end : found.start()]))
            parts.append(found.group() if _COLOUR.fullmatch(found.group()) else "")
            end = found.end()
        parts.append(_CONTROLS.sub("\ufffd", whole[end:]))
        return "".join(parts).encode(errors="replace")
