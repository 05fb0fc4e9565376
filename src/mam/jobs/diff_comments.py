"""Comments that a person writes into a diff, and the prompt that returns them to the agent."""

from __future__ import annotations

import re

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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


class Comment(Frozen):
    """One comment on a line of the diff, on a file (line 0), or on the whole change (no path)."""

    path: str
    line: int
    """The line of the file after the change."""
    code: str
    text: str
    is_outdated: bool = False
    """Whether the file has changed since the comment was made."""


def comments_prompt(edited: str) -> str | None:
    """The comments with the file, the line and the code that each is about; None if there are none."""
    comments: list[Comment] = []
    place, line, code = "", 0, ""
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
            comments.append(Comment(path=place, line=line, code=code, text="\n".join(comment).strip()))
        comment = []
        place, line, code = _next(text, place, line, code)
    return review_prompt(comments) if comments else None


def review_prompt(comments: Sequence[Comment]) -> str:
    """The prompt that returns the comments to the agent."""
    parts = "\n\n".join(map(_part, comments))
    return f"Comments on your changes. Please deal with each of them.\n\n{parts}\n"


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


def _part(comment: Comment) -> str:
    place = comment.path or "the whole change"
    where = f"{place}, line {comment.line}" if comment.line else place
    outdated = " (of an earlier state of the file)" if comment.is_outdated else ""
    quoted = f"\n    {comment.code[:_CODE_LIMIT]}" if comment.code else ""
    return f"{where}{outdated}:{quoted}\n{comment.text}"
