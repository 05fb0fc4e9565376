"""`mam prune` over many ended jobs on PostgreSQL: how long it takes, and what a job takes on the disk before and after.

The jobs are copies of one that a real worker ran. Output that agents leave has its own limits and is not counted.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psycopg

from mam.maintenance.retention import Retention, prune
from mam.registry import Registry
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tools.bench.common import Row, Rows, SizeRow
from tools.bench.postgres import copy_jobs
from tools.bench.server import DurableServer
from tools.bench.starts import isolated

RESULT_LETTERS, PROMPT_LETTERS = 150, 180
MINUTE, KILOBYTES_3 = 60.0, 3 * 1024
_SIZE = (
    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'mam'::regnamespace"
    " AND relname NOT LIKE 'output%'"
)


def measure_prune(folder: Path, count: int) -> Rows:
    server = DurableServer(folder / "pg")
    try:
        home = isolated(folder)
        url = _filled(server, home, count)
        before = _bytes(url)
        seconds = _pruned(url)
        after = _bytes(url)
    finally:
        server.stop("fast")
    what = f"PostgreSQL: {count:,} ended jobs"
    return [
        Row(f"PostgreSQL: `mam prune` of {count:,} jobs", "a minute", seconds, MINUTE, "at most 1"),
        SizeRow(f"{what}: a job on the disk", "3 KB", before / count, KILOBYTES_3, "none set"),
        SizeRow(f"{what}: the same after `mam prune`", "3 KB", after / count, KILOBYTES_3, "at most 1"),
    ]


def _filled(server: DurableServer, home: dict[str, str], count: int) -> str:
    url = server.new_database("prune")
    create_postgres_store(url)
    store = PostgresStore(url)
    registry = Registry(store)
    script = f"printf 'r%.0s' $(seq {RESULT_LETTERS}); : "
    job_id = registry.register(prompt=script.ljust(PROMPT_LETTERS, "p"), agent="shell").job.job_id
    _mam(home, "worker", "--agent-session", "shell", "--drain", "--store", url)
    done = store.get(job_id)
    registry.register(prompt="the newest job stays", agent="shell")
    store.close()
    with psycopg.connect(url) as connection:
        copy_jobs(connection, done, "i + 2", count - 1)
        connection.execute("UPDATE mam.job SET ended_at = '2020-01-01T00:00:00Z' WHERE ended_at IS NOT NULL")
        connection.execute("SELECT setval('mam.job_number', (SELECT max(number) FROM mam.job))")
        connection.execute("UPDATE mam.job SET number = number + %s WHERE ended_at IS NULL", (2 * count,))
    return url


def _pruned(url: str) -> float:
    """Without the audit log, which here would first have to copy the histories of all jobs."""
    store = PostgresStore(url)
    start = time.perf_counter()
    prune(Registry(store), Retention(before="2021-01-01T00:00:00Z"), 30, lambda _count: None)
    seconds = time.perf_counter() - start
    store.close()
    return seconds


def _mam(home: dict[str, str], *words: str) -> None:
    command = [sys.executable, "-m", "mam", *words]
    subprocess.run(command, env=home, cwd=home["HOME"], check=True, capture_output=True)


def _bytes(url: str) -> int:
    """Densely packed, as after a vacuum of everything."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM FULL")
        row = connection.execute(_SIZE.encode()).fetchone()
    return int(row[0]) if row else 0
