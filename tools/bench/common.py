"""Alternates measurements, and makes rows of the results."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LABEL = "bench"
OWNER = "bench"
PROMPT = "x" * 400


class Measured:
    """Durations of several things that alternate, each round in another order, because each one leaves its data in the
    processor's caches for the next. A rest before each empties the caches."""

    def __init__(self, rounds: int, things: Mapping[str, Callable[[], object]], rest_seconds: float = 0.0) -> None:
        self._seconds: dict[str, list[float]] = {name: [] for name in things}
        names, chance = list(things), random.Random(rounds)
        for _ in range(rounds):
            chance.shuffle(names)
            for name in names:
                time.sleep(rest_seconds)
                start = time.perf_counter()
                things[name]()
                self._seconds[name].append(time.perf_counter() - start)

    def median(self, name: str) -> float:
        return statistics.median(self._seconds[name])


class Row:
    """One line of the table: mam's time as a multiple of the other side's, and what it may be."""

    def __init__(self, what: str, against: str, seconds: float, bare: float, bar: str) -> None:
        self.cells = (what, _ms(seconds), against, _ms(bare), f"**{seconds / bare:.2f}**", bar)


class SizeRow:
    """The bytes that something takes, as a multiple of what they may be."""

    def __init__(self, what: str, against: str, size: float, most: float, bar: str) -> None:
        self.cells = (what, f"{size:,.0f} bytes", against, f"{most:,.0f} bytes", f"**{size / most:.2f}**", bar)


class PeerRow:
    """Here more is better: how many times as fast as the peer mam is."""

    def __init__(self, what: str, against: str, seconds: float, peer: float | None, bar: str) -> None:
        if peer is None:
            self.cells = (what, _ms(seconds), f"{against}: not installed", "–", "–", bar)
        else:
            self.cells = (what, _ms(seconds), against, _ms(peer), f"**{peer / seconds:.2f}** times as fast", bar)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


Rows = list[Row | PeerRow | SizeRow]
