"""Comments that a person writes into a diff, and the prompt that returns them to the agent."""

from __future__ import annotations

import re

MARK = "#"
"""A line of a comment begins with it; no line of a diff does."""
HEADING = (
    "# Write your comments below the lines that they are about.",
    "# Each line of a comment begins with #; do not change other lines.",
    "# These first lines are not sent. Without comments nothing is sent.",
)
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_CODE_LIMIT = 200


def with_heading(diff: str) -> str:
    return "\n".join(HEADING) + f"\n\n{diff}"


def comments_prompt(edited: str) -> str | None:
    """The comments with the file, the line and the code that each is about; None if there are none."""
    parts: list[str] = []
    place, line, code = "the whole change", 0, ""
    comment: list[str] = []
    rest = list(HEADING)
    for text in [*edited.splitlines(), ""]:
        if text.startswith(MARK):
            if text in rest:
                rest.remove(text)
            else:
                comment.append(text[1:].strip())
            continue
        if any(comment):
            parts.append(_part(place, line, code, comment))
        comment = []
        place, line, code = _next(text, place, line, code)
    if not parts:
        return None
    return "Comments on your changes. Please deal with each of them.\n\n" + "\n\n".join(parts) + "\n"


def _next(text: str, place: str, line: int, code: str) -> tuple[str, int, str]:
    """The file, the line of the file after the change, and the code, behind this line of the diff."""
    if text.startswith("diff --git "):
        return text.rpartition(" b/")[2] or text, 0, ""
    if text.startswith("+++ b/"):
        return text.removeprefix("+++ b/").rstrip("\t"), 0, ""
    if hunk := _HUNK.match(text):
        return place, int(hunk[2]) - 1, ""
    if text.startswith(("+", " ")) and not text.startswith("+++ "):
        return place, line + 1, text
    if text.startswith("-") and not text.startswith("--- "):
        return place, line, text
    return place, line, code


def _part(place: str, line: int, code: str, comment: list[str]) -> str:
    where = f"{place}, line {line}" if line else place
    quoted = f"\n    {code[:_CODE_LIMIT]}" if code else ""
    return f"{where}:{quoted}\n" + "\n".join(comment).strip()
