"""Times as a page shows them: an age or a clock time, with the exact time beside it. Pure.

A script turns them into the viewer's time zone. Without script, the exact time is in UTC.
"""

from __future__ import annotations

from mam.errors import MamError
from mam.util.clock import iso_second, parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False

_STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


class When(Frozen):
    """A moment for a `<time>` element."""

    iso: str
    text: str
    """As words: `5 min`, `5 min ago`."""
    exact: str
    """`2026-11-19 03:24:41 UTC`."""
    form: str
    """How a script writes it again: `age`, `ago`, `left` or `clock`."""


def age(text: str | None, now_ms: int) -> When | None:
    """How long ago, without a word behind it. A time in the future is an age of 0, as clocks may differ."""
    return _when(text, now_ms, "age")


def ago(text: str | None, now_ms: int) -> When | None:
    return _when(text, now_ms, "ago")


def left(text: str | None, now_ms: int) -> When | None:
    """How long until then: `in 5 min`."""
    return _when(text, now_ms, "left")


def clock(text: str | None) -> When | None:
    """The time of day, for lists of what happened."""
    return _when(text, 0, "clock")


def _when(text: str | None, now_ms: int, form: str) -> When | None:
    try:
        at_ms = parse_time(text) if isinstance(text, str) else None
    except (ValueError, OverflowError, MamError):
        at_ms = None
    if at_ms is None:
        return None
    iso = iso_second(at_ms)
    seconds = (at_ms - now_ms if form == "left" else now_ms - at_ms) // 1000
    span = words_of(max(0, seconds))
    shown = {"age": span, "ago": f"{span} ago", "left": f"in {span}", "clock": iso[11:16]}[form]
    return When(iso=iso, text=shown, exact=f"{iso[:10]} {iso[11:19]} UTC", form=form)


def words_of(seconds: int) -> str:
    """`40 s`, `6 min`, `2 h`, `3 d`: the largest unit."""
    return next((f"{seconds // size} {unit}" for size, unit in _STEPS if seconds >= size), "0 s")
