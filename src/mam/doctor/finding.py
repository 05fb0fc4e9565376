"""A finding of a check: what, why it matters, and the command that repairs it."""

from __future__ import annotations

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FINE, NOTE, WRONG, MENDED = "fine", "note", "wrong", "mended"
FIX = "mam doctor --fix"


class Finding(Frozen):
    state: str
    what: str
    why: str = ""
    mend: str | None = None
    """The command that repairs it."""
    fix: Callable[[], object] | None = None
    """The repair of `--fix`; it must be safe and repeatable."""


def fine(what: str) -> Finding:
    return Finding(state=FINE, what=what)


def note(what: str, why: str, mend: str | None = None, fix: Callable[[], object] | None = None) -> Finding:
    """A fact worth knowing that is not an error."""
    return Finding(state=NOTE, what=what, why=why, mend=FIX if fix is not None and mend is None else mend, fix=fix)


def wrong(what: str, why: str, mend: str | None = None, fix: Callable[[], object] | None = None) -> Finding:
    return Finding(state=WRONG, what=what, why=why, mend=FIX if fix is not None and mend is None else mend, fix=fix)


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_few(names: list[str], most: int = 3) -> str:
    """The first names, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
