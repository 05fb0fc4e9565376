"""A fake clock that moves only when a test moves it."""

from __future__ import annotations

from threading import Lock

from mam.util.clock import Moment

START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""

_BOOT_MS = 1_000_000
_ODD = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""Multiplying by an odd number visits every 128-bit id once, and neighbours share no prefix."""


class FakeClock:
    """Wall clock and boot clock move separately; ids and chance are the same in every run. Safe for threads."""

    def __init__(self, wall_ms: int = START_MS, chance: float = 0.5) -> None:
        self._lock = Lock()
        self._wall_ms = wall_ms
        self._boot_ms = _BOOT_MS
        self._boots = 1
        self._ids = 0
        self._chance = chance

    def now(self) -> Moment:
        with self._lock:
            return Moment(wall_ms=self._wall_ms, boot_ms=self._boot_ms, boot_id=f"boot-{self._boots}")

    def new_id(self) -> str:
        with self._lock:
            self._ids += 1
            return f"{self._ids * _ODD % 2**128:032x}"

    def chance(self) -> float:
        with self._lock:
            return self._chance

    def advance(self, seconds: float) -> None:
        """Time passes, on both clocks."""
        with self._lock:
            self._wall_ms += round(seconds * 1000)
            self._boot_ms += round(seconds * 1000)

    def set_wall(self, seconds: float) -> None:
        """Steps the wall clock, forward or back; no time passes."""
        with self._lock:
            self._wall_ms += round(seconds * 1000)

    def restart(self, seconds: float = 0) -> None:
        """Restarts the machine; `seconds` pass on the wall clock."""
        with self._lock:
            self._boots += 1
            self._boot_ms = 0
            self._wall_ms += round(seconds * 1000)

    def let_chance_be(self, chance: float) -> None:
        with self._lock:
            self._chance = chance
