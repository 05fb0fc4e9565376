"""What a check has to say, one line each: what, why it matters, and the command that mends it."""

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
    """The command that puts it right."""
    fix: Callable[[], object] | None = None
    """What `--fix` does about it: only what is safe and can be done twice."""


def fine(what: str) -> Finding:
    return Finding(state=FINE, what=what)


def note(what: str, why: str, mend: str | None = None, fix: Callable[[], object] | None = None) -> Finding:
    """Worth knowing, and nothing that is broken."""
    return Finding(state=NOTE, what=what, why=why, mend=FIX if fix is not None and mend is None else mend, fix=fix)


def wrong(what: str, why: str, mend: str | None = None, fix: Callable[[], object] | None = None) -> Finding:
    return Finding(state=WRONG, what=what, why=why, mend=FIX if fix is not None and mend is None else mend, fix=fix)


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_few(names: list[str], most: int = 3) -> str:
    """The first of many, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
