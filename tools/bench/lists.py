"""What people wait for over a large registry: lists, the first screen of `watch`, `stats`, `prune --dry-run`,
`doctor`."""

from __future__ import annotations

import statistics
import subprocess
import time
from pathlib import Path

from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tools.bench.common import Row, Rows
from tools.bench.filling import fill
from tools.bench.starts import installed, isolated

COMMANDS: dict[str, tuple[str, ...]] = {
    "list": ("list", "--limit", "50"),
    "list --status running": ("list", "--limit", "50", "--status", "running"),
    "list --status pending": ("list", "--limit", "50", "--status", "pending"),
    "list --status error": ("list", "--limit", "50", "--status", "error"),
    "list --agent-session": ("list", "--limit", "50", "--agent-session", "bench"),
    "list --since 1h": ("list", "--limit", "50", "--since", "1h"),
    "prune --dry-run": ("prune", "--dry-run"),
    "stats": ("stats",),
    "doctor": ("doctor",),
}
BUDGETS = {"doctor": 10.0}
TIMES = 3


def measure_lists(folder: Path, ended: int, pending: int) -> Rows:
    path = folder / "jobs.db"
    create_sqlite_store(str(path))
    store = SqliteStore(str(path))
    fill(store, path, pending=pending, ended=ended)
    store.close()
    _, mam = installed(folder / "venv")
    environment = {**isolated(folder), "MAM_STORE": f"sqlite://{path}"}
    what = f"SQLite, {ended:,} ended and {pending:,} pending jobs"
    rows: Rows = []
    for name, words in COMMANDS.items():
        seconds = statistics.median(_seconds((mam, *words), environment, folder) for _ in range(TIMES))
        budget = BUDGETS.get(name, 1.0)
        rows.append(Row(f"{what}: `mam {name}`", f"{budget:g} s", seconds, budget, "at most 1"))
    return rows


def _seconds(command: tuple[str, ...], environment: dict[str, str], folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run(
        command, env=environment, cwd=folder / "home", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return time.perf_counter() - start
