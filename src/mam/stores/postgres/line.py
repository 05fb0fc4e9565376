"""Where the line of a label begins, for a burst of claims.

What claims have taken stays in their index until the server's vacuum comes, about once a minute, and every later claim
walks over it. So whoever claims much looks now and then where the first pending job is, and claims from there. `moves`
of the store says whether that is still true: whatever becomes pending, but for new jobs of priority 0 or less, adds to
it in the same transaction, and so does what stands before all claims (`moves_line`, `pause`): while it is the same, no
end is still to be told and nothing is paused. Those new jobs come in behind the first, since no registration was under
way when the store looked. What somebody makes pending without adding to it waits until the next look.
"""

from __future__ import annotations

from mam.jobs.status import PENDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Beginning = dict[str, int]
    """`moves`, `priority` and `number`, as `claim in line` is given them."""

LOOK_AFTER = 128
"""So many claims pass between two looks, and before the first; a few more, since a decision is for several."""

NO, PERHAPS, SURELY = 0, 1, 2
_FREEING = frozenset(("free heads", "take back"))
_UPDATES = frozenset(("update job", "update job and tell"))


def moves_line(query: str, values: dict[str, Any]) -> int:
    """Whether what a query writes moves the line. Of an end that depends on whether anybody comes after the job."""
    if query in _UPDATES:
        return SURELY if values["news"] and values["status"] == PENDING else NO
    if query == "insert job":
        return SURELY if values["priority"] > 0 and values["status"] == PENDING else NO
    return SURELY if query in _FREEING else PERHAPS if query == "ended" else NO


class Line:
    def __init__(self) -> None:
        self._known: tuple[str, Beginning | None] = ("", None)
        """Together: threads that ask for different labels share this."""
        self._claims = 0

    def beginning(self, label: str, claims: int, look: Callable[[str], Any | None]) -> Beginning | None:
        """None while it is unknown, and where it cannot be known; `claims` were made since it was last asked for."""
        known, found = self._known
        if known != label:
            self._claims, found = 0, None
        else:
            self._claims += claims
        if self._claims >= LOOK_AFTER:
            self._claims, row = 0, look(label)
            found = None if row is None else dict(zip(("moves", "priority", "number"), row, strict=True))
        self._known = (label, found)
        return found

    def forget(self) -> None:
        self._known = ("", None)
