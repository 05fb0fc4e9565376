"""What people wait for over a large registry: lists, the first screen of `watch`, `stats`, `prune --dry-run`,
`doctor`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from mam.cli.watch.model import Model
from mam.config.settings import Config
from mam.location.stores import open_store, parse_address
from mam.stores.port import Query
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tools.bench.common import Row, Rows
from tools.bench.filling import fill
from tools.bench.postgres import filled_postgres
from tools.bench.server import DurableServer
from tools.bench.starts import isolated

FEW = ("list", "--limit", "50")
COMMANDS: dict[str, tuple[str, ...]] = {
    "list": FEW,
    "list --status running": (*FEW, "--status", "running"),
    "list --status pending": (*FEW, "--status", "pending"),
    "list --status error": (*FEW, "--status", "error"),
    "list --agent-session": (*FEW, "--agent-session", "bench"),
    "list --since 1h": (*FEW, "--since", "1h"),
    "prune --dry-run": ("prune", "--older-than", "30d", "--dry-run"),
    "stats": ("stats",),
    "doctor": ("doctor",),
}
SHOWN = ("list", "watch", "stats", "prune --dry-run")
TIMES = 3


def measure_lists(folder: Path, ended: int, pending: int) -> Rows:
    path = folder / "jobs.db"
    create_sqlite_store(str(path))
    store = SqliteStore(str(path))
    fill(store, path, pending=pending, ended=ended)
    store.close()
    rows = _measured(f"sqlite://{path}", "SQLite", folder)
    server = DurableServer(folder / "pg")
    try:
        url = filled_postgres(server, "lists", pending=pending, ended=ended)
        return [*rows, *_measured(url, "PostgreSQL", folder)]
    finally:
        server.stop("fast")


def _measured(store: str, kind: str, folder: Path) -> Rows:
    environment = {**isolated(folder / kind), "MAM_STORE": store}

    def seconds_of(*words: str) -> float:
        return _seconds((sys.executable, "-m", "mam", *words), environment, folder / kind)

    print(f"{kind}: the first `mam stats` read the journal in {seconds_of('stats'):.0f} s", file=sys.stderr)
    found = {name: statistics.median(seconds_of(*words) for _ in range(TIMES)) for name, words in COMMANDS.items()}
    found["watch"] = statistics.median(_first_screen(store) for _ in range(TIMES))
    doctor = found.pop("doctor")
    slowest = max(found, key=lambda name: found[name])
    what = f"{kind}: `mam {slowest}`, the slowest of {', '.join(f'`{name}`' for name in SHOWN)}"
    return [
        Row(what, "a second", found[slowest], 1.0, "at most 1"),
        Row(f"{kind}: `mam doctor`", "ten seconds", doctor, 10.0, "at most 1"),
    ]


def _first_screen(address: str) -> float:
    start = time.perf_counter()
    store = open_store(parse_address(address, "the bench"), Config())
    Model(store, Query()).load()
    store.close()
    return time.perf_counter() - start


def _seconds(command: tuple[str, ...], environment: dict[str, str], folder: Path) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        command, env=environment, cwd=folder / "home", stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    if done.returncode and "doctor" not in command:  # doctor has remarks about a machine that has no agents
        raise RuntimeError(f"{command}: {done.stderr}")
    return seconds
