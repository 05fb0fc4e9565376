"""Time, ids and random numbers; passed as a parameter everywhere, so that tests control them.

During one boot, CLOCK_BOOTTIME decides whether a lease has expired, because it does not jump. Across boots the wall
clock decides. Order never comes from a clock.
"""

from __future__ import annotations

import os
import sys
import time
from time import clock_gettime_ns, time_ns

from mam.util.frozen import Frozen, allocate, set_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Clock(Protocol):
        """The time, new ids and random numbers."""

        def now(self) -> Moment: ...

        def new_id(self) -> str: ...

        def chance(self) -> float: ...


class Moment(Frozen):
    """One reading of all clocks. With an empty `boot_id` only the wall clock counts (a reading of another host)."""

    wall_ms: int
    boot_ms: int = 0
    boot_id: str = ""

    @property
    def second(self) -> str:
        """`YYYY-MM-DDTHH:MM:SSZ`, the form of created_at and updated_at."""
        return _second_texts.get(self.wall_ms // 1000) or iso_second(self.wall_ms)


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> Moment:
        moment = allocate(Moment)
        set_fields(
            moment,
            {
                "wall_ms": time_ns() // 1_000_000,
                "boot_ms": clock_gettime_ns(_SINCE_BOOT) // 1_000_000,
                "boot_id": boot_id() if _boot_id is None else _boot_id,
            },
        )
        return moment

    def new_id(self) -> str:
        return os.urandom(16).hex()

    def chance(self) -> float:
        return int.from_bytes(os.urandom(4), "big") / 2**32


_second_texts: dict[int, str] = {}
_last_milli = (0, "1970-01-01T00:00:00.000Z")
"""Caches: an act formats the same second several times, and parses the end of its lease again."""

_SECOND_TEXTS_KEPT = 16


def iso_second(wall_ms: int) -> str:
    second = wall_ms // 1000
    text = _second_texts.get(second)
    if text is None:
        if len(_second_texts) >= _SECOND_TEXTS_KEPT:
            _second_texts.clear()
        text = _second_texts[second] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
    return text


def iso_milli(wall_ms: int) -> str:
    global _last_milli
    text = f"{(_second_texts.get(wall_ms // 1000) or iso_second(wall_ms))[:-1]}.{wall_ms % 1000:03d}Z"
    if len(text) == 24:  # otherwise the year has more than four digits, which mam does not read
        _last_milli = (wall_ms, text)
    return text


def parse_time(text: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time with a zone; ValueError without one."""
    wall_ms, written = _last_milli
    if written == text:
        return wall_ms
    if len(text) in (20, 24) and text[10] == "T" and text[-1] == "Z":
        return _parse_own_form(text)
    from datetime import datetime  # only for times in other forms than mam's own

    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text} has no time zone; add Z or +hh:mm")
    return round(moment.timestamp() * 1000)


def _parse_own_form(text: str) -> int:
    year, month, day = int(text[0:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    milli = int(text[20:23]) if len(text) == 24 else 0
    wall_ms = ((_days_since_epoch(year, month, day) * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + milli
    # Formatting it again finds a day that the month lacks, and signs or spaces that int() accepts.
    if text != (iso_milli(wall_ms) if len(text) == 24 else iso_second(wall_ms)):
        raise ValueError(f"{text} is not a time")
    return wall_ms


def _days_since_epoch(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar, counted from March so that the leap day comes last."""
    if month < 3:
        year, month = year - 1, month + 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day - 719_469


_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


_boot_id: str | None = None


def boot_id() -> str:
    """The id of the current boot; empty where the system has none, and then the wall clock decides."""
    global _boot_id
    if _boot_id is None:
        _boot_id = _read_boot_id()
    return _boot_id


def _read_boot_id() -> str:
    if sys.platform == "darwin":
        import subprocess

        asked = subprocess.run(["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True)
        return asked.stdout.strip().lower()
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
