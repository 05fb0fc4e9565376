"""Detect a question on a screen that typed text would answer by accident: a menu, yes or no, a password, any key.

A question in a conversation is not one of these, because there an answer is expected. Hooks are more reliable than the
screen; this check covers agents without hooks, and programs that run inside an agent.
"""

from __future__ import annotations

import re

LINES_LOOKED_AT = 25
_LAST_LINES = 2
"""A conversation ends above the input box, which has at least two lines."""

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
    """Whether this numbered line is selected and another one is next to it."""
    if not _CHOSEN_NUMBER.match(lines[at]):
        return False
    beside = [lines[near] for near in (at - 1, at + 1) if 0 <= near < len(lines)]
    return any(_NUMBER.match(line) for line in beside)
