"""Text for the terminal: foreign text made safe, and hints."""

from __future__ import annotations

import re

from mam.util.safe_text import UNSAFE, first_line, many_lines, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["first_line", "json_safe", "many_lines", "nearest", "one_line"]


def json_safe(json_text: str) -> str:
    """Escapes unsafe characters, which JSON can contain only inside strings."""
    if json_text.isascii() and json_text.isprintable():
        return json_text
    import json

    return re.sub(f"(?![\n])[{UNSAFE}]", lambda found: json.dumps(found[0])[1:-1], json_text)


def nearest(word: str, choices: Iterable[str]) -> str:
    """` (did you mean …?)` if a choice is similar, otherwise empty."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f" (did you mean {found[0]}?)" if found else ""
