"""Alternates measurements and formats the table."""

from __future__ import annotations

import os
import platform
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REPORT = ROOT / "docs" / "performance.md"
LABEL = "bench"
OWNER = "bench"
PROMPT = "x" * 400


class Measured:
    """Durations of several things that took turns, each time in another order: what has just been done is in the
    processor's caches for whatever comes next. With a rest before each there is nothing left in them."""

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


def as_table(rows: Rows) -> str:
    return as_plain_table(("what", "median", "against", "median", "ratio", "budget"), [row.cells for row in rows])


def as_plain_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ("---",) * len(head), *rows])


def write_report(table: str, name: str) -> None:
    """Between the markers of that name in docs/performance.md, with what the numbers depend on."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    load = os.getloadavg()[2]
    said = (
        f"Measured {time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {os.cpu_count()} cores, {where()},"
        f" load {load:.1f} over the last 15 minutes."
    )
    before, _, rest = REPORT.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    REPORT.write_text(f"{before}{begin}\n{said}\n\n{table}\n{end}{after}", encoding="utf-8")


def where() -> str:
    """The file system that was written to; everything here depends on it."""
    found = shutil.which("findmnt")
    folder = os.environ.get("MAM_BENCH_DIR") or tempfile.gettempdir()
    if found is None:
        return "file system unknown"
    asked = subprocess.run([found, "-no", "FSTYPE", "-T", folder], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "file system unknown"
