"""Whether a screen asks something that a text would answer by accident: a menu, yes or no, a password, any key.

A question in the course of a conversation is none of these: there an answer is what is wanted. Agents that have hooks
tell better than their screen does; this is for all of them, and for whatever runs inside them.
"""

from __future__ import annotations

import re

LINES_LOOKED_AT = 25
_LAST_LINES = 2
"""What a conversation ends in is above the box for the next line, which has two lines of its own at least."""

_ANYWHERE = re.compile(
    r"^\W*(?:(?:permission|approval) required\b|allow once\b)|\bpress (?:enter|return|any key) to\b", re.IGNORECASE
)
_CHOSEN_WORD = re.compile(r"^\W*[❯›▶➤●]\s*(?:yes|no|allow|approve|reject|deny)\b", re.IGNORECASE)
_CHOSEN_NUMBER = re.compile(r"^\W*[❯›▶➤●>]\s*\d+[.)]\s")
_NUMBER = re.compile(r"^\W*\d+[.)]\s")
_AT_THE_END = re.compile(
    r"[\[(]\s*y(?:es)?\s*/\s*n(?:o)?(?:\s*/\s*\w+)*\s*[\])]\s*[:?]?$"
    r"|\b(?:password|passphrase|passcode)\b[^:]*:$"
    r"|^\W*(?:do you|would you|are you sure|allow|proceed|continue|overwrite|replace|delete)\b.*\?$",
    re.IGNORECASE,
)


def find_question(screen: str) -> str | None:
    """The line that asks, or None."""
    lines = [line.strip(" \t│┃|╭╮╰╯─━") for line in screen.splitlines()]
    shown = [line for line in lines if line][-LINES_LOOKED_AT:]
    for at, line in enumerate(shown):
        if _ANYWHERE.search(line) or _CHOSEN_WORD.match(line) or _is_menu(shown, at):
            return line
    return next((line for line in shown[-_LAST_LINES:] if _AT_THE_END.search(line)), None)


def _is_menu(lines: list[str], at: int) -> bool:
    """One numbered line is chosen, and another one stands beside it."""
    if not _CHOSEN_NUMBER.match(lines[at]):
        return False
    beside = [lines[near] for near in (at - 1, at + 1) if 0 <= near < len(lines)]
    return any(_NUMBER.match(line) for line in beside)
