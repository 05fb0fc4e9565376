"""The table of docs/performance.md. A run replaces the rows of the parts that it measured and leaves the others."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping

from tools.bench.common import ROOT, Rows

REPORT = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
HEAD = ("part", "what", "median", "against", "median", "ratio", "budget", "measured")


def as_table(found: Mapping[str, Rows], measured: str = "now") -> str:
    return "\n".join(_line(cells) for cells in (HEAD, ("---",) * len(HEAD), *_cells(found, measured)))


def write_report(found: Mapping[str, Rows], parts: list[str]) -> None:
    """Writes the rows between the markers, in the order of `parts`."""
    before, _, rest = REPORT.read_text(encoding="utf-8").partition(f"{BEGIN}\n")
    old, _, after = rest.partition(END)
    measured = f"{time.strftime('%m-%d')}, load {os.getloadavg()[2]:.1f}"
    rows = [cells for cells in _read(old) if cells[0] not in found] + _cells(found, measured)
    rows.sort(key=lambda cells: parts.index(cells[0]))
    table = "\n".join(_line(cells) for cells in (HEAD, ("---",) * len(HEAD), *rows))
    said = f"Python {platform.python_version()}, {os.cpu_count()} cores, {where()}; the last column has day and load."
    REPORT.write_text(f"{before}{BEGIN}\n{said}\n\n{table}\n{END}{after}", encoding="utf-8")


def _cells(found: Mapping[str, Rows], measured: str) -> list[tuple[str, ...]]:
    return [(part, *row.cells, measured) for part, rows in found.items() for row in rows]


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _read(text: str) -> list[tuple[str, ...]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [tuple(line[2:-2].split(" | ")) for line in lines[2:]]


def where() -> str:
    """The file system that the bench writes to; every durable write depends on it."""
    found = shutil.which("findmnt")
    folder = os.environ.get("MAM_BENCH_DIR") or tempfile.gettempdir()
    if found is None:
        return "file system unknown"
    asked = subprocess.run([found, "-no", "FSTYPE", "-T", folder], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "file system unknown"
