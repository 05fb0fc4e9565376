"""`python -m tools.bench [--quick | --long] [PART …]`.

Parts: starts sqlite lists postgres prune worker inbox bus questions serving page.

Without a part, it measures all of them. It replaces their rows in docs/performance.md; with `--quick` it prints only.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools.bench.bus import measure_bus
from tools.bench.common import Rows
from tools.bench.inbox import measure_inbox
from tools.bench.lists import measure_lists
from tools.bench.page import measure_page
from tools.bench.postgres import measure_postgres
from tools.bench.prune import measure_prune
from tools.bench.questions import measure_questions
from tools.bench.report import as_table, write_report
from tools.bench.serving import measure_serving
from tools.bench.sqlite import measure_sqlite
from tools.bench.starts import measure_starts
from tools.bench.worker import measure_worker

QUICK, LONG = "--quick", "--long"


def main() -> None:
    chosen = sys.argv[1:]
    quick, long = QUICK in chosen, LONG in chosen
    measures: dict[str, Callable[[Path], Rows]] = {
        "starts": measure_starts,
        "sqlite": lambda folder: measure_sqlite(folder, _counts([1_000, 100_000], quick, long)),
        "lists": lambda folder: measure_lists(folder, *((10_000, 1_000) if quick else (1_000_000, 100_000))),
        "postgres": lambda folder: measure_postgres(folder, _counts([1_000, 100_000], quick, long), wear=long),
        "prune": lambda folder: measure_prune(folder, 2_000 if quick else 100_000),
        "worker": lambda folder: measure_worker(folder, 200 if quick else 10_000 if long else 1_000),
        "inbox": lambda folder: measure_inbox(folder, 1_000 if quick else 10_000),
        "bus": measure_bus,
        "questions": measure_questions,
        "serving": measure_serving,
        "page": lambda folder: measure_page(folder, *((9_000, 1_000) if quick else (900_000, 100_000))),
    }
    if unknown := set(chosen) - measures.keys() - {QUICK, LONG}:
        raise SystemExit(f"unknown: {' '.join(sorted(unknown))}\n{__doc__}")
    parts = [name for name in measures if name in chosen] or [name for name in measures if _is_due(name, long)]
    rows: dict[str, Rows] = {}
    with tempfile.TemporaryDirectory(prefix="mam-bench-", dir=os.environ.get("MAM_BENCH_DIR")) as folder:
        os.chmod(folder, 0o755)  # PostgreSQL runs as another user when the bench is run by root
        for name in parts:
            below = Path(folder) / name
            below.mkdir()
            rows[name] = measures[name](below)
    print(as_table(rows))
    if not quick:
        write_report(rows, list(measures))


def _is_due(name: str, long: bool) -> bool:
    """A long run measures the parts that must stay flat."""
    return not long or name in ("sqlite", "postgres", "worker")


def _counts(counts: list[int], quick: bool, long: bool) -> list[int]:
    return counts[:-1] if quick else [*counts, 1_000_000] if long else counts


if __name__ == "__main__":
    main()
