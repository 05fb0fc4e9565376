"""Classifies vendors' error messages, and finds the end of a usage limit in them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from mam.events.event import redact
from mam.work.reports.report import BILLING, FAILED, LIMIT, LOGIN, OVERLOAD, AgentProblem, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo

_KINDS = (
    (BILLING, r"insufficient_quota|exceeded your current quota|billing|credit balance|payment required"),
    (LIMIT, r"usage limit|usage_limit|hit your .{0,40}limit|limit reached|rate.?limit|too many requests|\b429\b"),
    (LOGIN, r"\b40[13]\b|unauthori[sz]ed|api key|api_key|not logged in|log ?in\b|/login|authenticat|oauth"
            r"|missing environment variable"),
    (OVERLOAD, r"\b5(00|02|03|04|20|29)\b|overloaded|at capacity|server_error|internal server error"
               r"|high demand|temporary error"
               r"|empty or malformed response|type validation failed|json parsing failed|invalid json response"
               r"|stream (disconnected|closed)|timed? ?out|connection|to connect|cannot connect|network|temporarily"),
)  # fmt: skip
_BY_STATUS = {401: LOGIN, 402: BILLING, 403: LOGIN, 408: OVERLOAD, 429: LIMIT}
_PLAN = re.compile(r"usage.?limit|hit your .{0,40}limit|limit (has been )?reached|insufficient_quota", re.IGNORECASE)

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_SPAN = re.compile(
    r"(?:again|resets?) in ((?:(?:about )?\d+(?:\.\d+)?\s*"
    r"(?:days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])[\s,]*(?:and )?)+)",
    re.IGNORECASE,
)
_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms])", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?:again at|resets?(?: at)?)\s+(?:(?P<month>[A-Z][a-z]{2})[a-z]*\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?,?"
    r"(?: (?P<year>\d{4}),?)?(?: at)? )?(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))? ?(?P<half>[ap]m)"
    r"(?: \((?P<zone>[A-Za-z_+\-/0-9]{1,40})\))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_STAMP = re.compile(r"\|\s*(\d{10})\b")
_LONGEST = timedelta(days=35)


def problem_from_text(
    text: object, status: object = None, resets_at_ms: int | None = None, now: datetime | None = None
) -> AgentProblem:
    """The kind according to the HTTP status, if that decides, otherwise according to the text."""
    said = one_line(text) or "no reason was given"
    kind = kind_of(said, status)
    if kind == LIMIT and resets_at_ms is None:
        resets_at_ms = reset_in(said, now)
    return AgentProblem(kind=kind, text=redact(said), resets_at_ms=resets_at_ms if kind == LIMIT else None)


def kind_of(text: str, status: object = None) -> str:
    if re.search(_KINDS[0][1], text, re.IGNORECASE):  # vendors send 400 and 429 for it
        return BILLING
    if type(status) is int and (known := _BY_STATUS.get(status, OVERLOAD if 500 <= status <= 599 else None)):
        return known
    return next((kind for kind, pattern in _KINDS if re.search(pattern, text, re.IGNORECASE)), FAILED)


def is_of_plan(text: str) -> bool:
    """Whether the limit is that of an account's plan, which does not end within seconds."""
    return _PLAN.search(text) is not None


def epoch_ms(seconds: object, now: datetime | None = None) -> int | None:
    """A vendor's Unix time, if it is plausible as the end of a limit."""
    if type(seconds) not in (int, float):
        return None
    try:
        return _sane(datetime.fromtimestamp(float(seconds), _now(now).tzinfo), _now(now))  # type: ignore[arg-type]
    except (OverflowError, OSError, ValueError):
        return None


def reset_in(text: str, now: datetime | None = None) -> int | None:
    """The end of the limit that a sentence describes, in milliseconds since 1970."""
    moment = _now(now)
    if found := _STAMP.search(text):
        return epoch_ms(int(found[1]), moment)
    if found := _SPAN.search(text):
        seconds = sum(float(count) * _UNITS[unit.lower()] for count, unit in _PIECE.findall(found[1]))
        return _sane(moment + timedelta(seconds=min(seconds, 1e9)), moment)
    if found := _CLOCK.search(text):
        return _at_clock(found, moment)
    return None


def _at_clock(found: re.Match[str], now: datetime) -> int | None:
    """`5:16 AM`, with or without a day; without one, the next time that clocks show it. Seconds are not given, so the
    limit ends with that minute."""
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    zone = _zone(found["zone"])
    here = now if zone is None else now.astimezone(zone)
    try:
        time = here.replace(
            hour=hour % 12 + (12 if found["half"].lower() == "pm" else 0), minute=minute, second=0, microsecond=0
        )
        if found["month"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            time = time.replace(year=int(found["year"] or here.year), month=month, day=int(found["day"]))
            if not found["year"] and time < here:
                time = time.replace(year=here.year + 1)
        time += timedelta(minutes=1)
        if not found["month"] and time <= here:
            time += timedelta(days=1)
    except ValueError:
        return None
    return _sane(time, now)


def _zone(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _sane(time: datetime, now: datetime) -> int | None:
    return round(time.timestamp() * 1000) if now < time < now + _LONGEST else None


def _now(now: datetime | None) -> datetime:
    return now if now is not None else datetime.now().astimezone()
