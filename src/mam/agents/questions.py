"""Whether a screen asks something. Text typed there would be taken for the answer, so that in doubt it is a question.

Agents that have hooks tell better than their screen does; this is for all of them, and for what they run.
"""

from __future__ import annotations

import re

LINES_LOOKED_AT = 25
_LAST_LINES = 3

_ANYWHERE = re.compile(
    r"^\W*(?:do you (?:want|trust|wish)\b.*\?"
    r"|would you like to\b.*\?"
    r"|are you sure\b.*\?"
    r"|allow (?:this|the|command|execution|tool)\b.*\?"
    r"|(?:permission|approval) required\b.*"
    r"|.*\bpress (?:enter|return|any key) to (?:continue|confirm)\b.*)",
    re.IGNORECASE,
)
_CHOSEN = re.compile(r"^\W*[❯›▶➤●>]\s*(?:\d+[.)]\s|(?:yes|no|allow|approve|reject|deny)\b)", re.IGNORECASE)
_AT_THE_END = re.compile(
    r"[\[(]\s*y(?:es)?\s*/\s*n(?:o)?(?:\s*/\s*\w+)*\s*[\])]|(?:password|passphrase|passcode)\b[^:]*:\s*$", re.IGNORECASE
)


def question_on(screen: str) -> str | None:
    """The line that asks, or None."""
    lines = [line.strip(" │┃|╭╮╰╯─━") for line in screen.splitlines()]
    shown = [line for line in lines if line][-LINES_LOOKED_AT:]
    for line in shown:
        if _ANYWHERE.match(line) or _CHOSEN.match(line):
            return line
    return next((line for line in shown[-_LAST_LINES:] if _AT_THE_END.search(line)), None)
