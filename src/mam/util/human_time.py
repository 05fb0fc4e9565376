"""Times and durations as people type them."""

from __future__ import annotations

from mam.errors import BadInput
from mam.util.clock import iso_second, parse_time

UNITS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400, "w": 604800}
LONGEST_SECONDS = 2**31 - 1


def parse_duration(text: str) -> float:
    """Seconds of `90`, `90s`, `5m`, `2h`, `1.5d`."""
    seconds = _seconds(text)
    if seconds is None or not 0 <= seconds <= LONGEST_SECONDS:
        raise BadInput(why=f"{text[:40]!r} is not a duration; write seconds, or 90s, 5m, 2h, 1d")
    return seconds


def parse_whole_seconds(text: str) -> int:
    seconds = parse_duration(text)
    if seconds != int(seconds):
        raise BadInput(why=f"{text[:40]!r} is not a whole number of seconds")
    return int(seconds)


def parse_lease_seconds(text: str) -> float:
    seconds = parse_duration(text)
    if seconds < 1:
        raise BadInput(why=f"a lease of {text[:40]!r} is too short; give at least 1 second")
    return seconds


def parse_when(text: str, now_ms: int, option: str = "--at") -> int:
    """A future time in milliseconds: an ISO 8601 time with a zone, or a duration from now (`+2h`, `90s`)."""
    ahead = _seconds(text.removeprefix("+"))
    if ahead is not None:
        return now_ms + round(parse_duration(text.removeprefix("+")) * 1000)
    return _parse_moment(option, text, "+2h for in two hours")


def parse_since(text: str, now_ms: int) -> str:
    """The second that `--since` names: an ISO 8601 time with a zone, or a duration ago (`2d`)."""
    ago = _seconds(text)
    if ago is not None:
        return iso_second(now_ms - round(parse_duration(text) * 1000))
    return iso_second(_parse_moment("--since", text, "2h for the last two hours"))


def format_age(milliseconds: int) -> str:
    """A duration in its largest unit: `3h`."""
    seconds = max(0, milliseconds // 1000)
    for unit in ("d", "h", "m"):
        if seconds >= UNITS[unit]:
            return f"{seconds // UNITS[unit]}{unit}"
    return f"{seconds}s"


def _seconds(text: str) -> float | None:
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(number) :] or "s"
    if unit not in UNITS or not number.isascii() or not number.replace(".", "", 1).isdigit():
        return None
    return float(number) * UNITS[unit]


def _parse_moment(option: str, text: str, example: str) -> int:
    try:
        moment = parse_time(text)
    except (ValueError, OverflowError):
        moment = None
    if moment is None and _has_no_zone(text):
        raise BadInput(why=f"{option} {text} has no time zone; add Z for UTC, or one such as +09:00")
    # Formatting it again finds a day that the calendar lacks.
    if moment is None or (text.endswith("Z") and iso_second(moment)[:19] != text[:19]):
        raise BadInput(
            why=f"{option} {text[:40]!r} is not a time; write {example},"
            " or a time with its zone such as 2026-11-15T10:00:00Z or 2026-11-15T10:00:00+09:00"
        )
    return moment


def _has_no_zone(text: str) -> bool:
    try:
        parse_time(f"{text}+00:00")
    except (ValueError, OverflowError):
        return False
    return True
