"""Claim and complete on PostgreSQL, beside peers on the same server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import psycopg

from mam.jobs.record import Job
from mam.registry import Registry
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tools.bench.alternation import WorkerProcesses, median_seconds
from tools.bench.common import LABEL, PROMPT, PeerRow, Row, Rows
from tools.bench.peers import PEERS, installed_peers
from tools.bench.server import DurableServer
from tools.bench.working import claim_and_complete

JOBS = 10_000
"""For mam and for each peer, all pending."""

ROUNDS, EACH = 20, 20
TURNS_BESIDE_PEERS = 40
WEAR = 100_000
CREWS = {1: "1 process", 4: "4 processes"}

COPIED = {"job": "number", "journal": "job"}
"""The tables that hold something of a job, and their column with its number."""


def measure_postgres(folder: Path, counts: list[int], *, wear: bool) -> Rows:
    server = DurableServer(folder / "pg")
    try:
        if wear:
            return [*flat(server, counts), *worn(server)]
        return [*beside_peers(server, folder), *flat(server, counts)]
    finally:
        server.stop("fast")


def beside_peers(server: DurableServer, folder: Path) -> Rows:
    ours = working_on(filled_postgres(server, "ours", pending=JOBS, ended=0))
    peers = installed_peers(folder / "peers", server, JOBS)
    rows: Rows = []
    for size, processes in CREWS.items():
        seconds = median_seconds({"mam": ours, **peers}, size, TURNS_BESIDE_PEERS, EACH)
        what = f"PostgreSQL: claim + complete, {processes}"
        rows += [PeerRow(what, peer.shown, seconds["mam"], seconds.get(peer.name), peer.budget) for peer in PEERS]
    return rows


def flat(server: DurableServer, counts: list[int]) -> Rows:
    urls = {
        f"{count:,}": filled_postgres(server, f"flat{count}", pending=count // 2, ended=count // 2) for count in counts
    }
    seconds = median_seconds({name: working_on(url) for name, url in urls.items()}, 1, ROUNDS, EACH)
    least, *more = urls
    return [
        Row(
            f"PostgreSQL: claim + complete, {name} jobs", f"claim + complete, {least} jobs",
            seconds[name], seconds[least], "flat",
        )
        for name in more
    ]  # fmt: skip


def worn(server: DurableServer) -> Rows:
    """After so many claims, with no vacuum but what the server does by itself: at once, and when it has done so."""
    fresh, used = (filled_postgres(server, name, pending=2 * WEAR, ended=2 * WEAR) for name in ("fresh", "used"))
    group = WorkerProcesses(working_on(used), 4)
    group.work(WEAR // 4)
    group.close()
    vacuums = server.vacuums(used)
    what = f"PostgreSQL: claim + complete, after {WEAR:,} claims"
    rows = [_worn_row(f"{what}, before the server has vacuumed", fresh, used, "none set")]
    server.until_vacuumed(used, vacuums)
    return [*rows, _worn_row(f"{what} and the server's own vacuum", fresh, used, "flat")]


def _worn_row(what: str, fresh: str, used: str, bar: str) -> Row:
    seconds = median_seconds({"fresh": working_on(fresh), "used": working_on(used)}, 1, ROUNDS, EACH)
    return Row(what, "the same, before any", seconds["used"], seconds["fresh"], bar)


def working_on(url: str) -> list[str]:
    return [sys.executable, "-m", "tools.bench.workers.with_mam", url]


def filled_postgres(server: DurableServer, name: str, *, pending: int, ended: int) -> str:
    """The address of a store of so many jobs; ended and pending ones take turns as far as both go."""
    url = server.new_database(name)
    create_postgres_store(url)
    store = PostgresStore(url)
    registry = Registry(store)
    registry.register(prompt=PROMPT, agent="bench", label=LABEL)
    done = store.get(claim_and_complete(registry))
    waiting = registry.register(prompt=PROMPT, agent="bench", label=LABEL).job
    store.close()
    with psycopg.connect(url) as connection:
        copy_jobs(connection, waiting, "2 * i + 1", pending - 1)
        copy_jobs(connection, done, "2 * i + 2", ended - 1)
        connection.execute("SELECT setval('mam.job_number', (SELECT max(number) FROM mam.job))")
    server.settle(url)
    return url


def copy_jobs(connection: psycopg.Connection[Any], template: Job, number: str, count: int) -> None:
    """Everything that is kept of the template, once for each fresh id."""
    fresh = f"SELECT md5(random()::text || i) AS job_id, {number} AS number FROM generate_series(1, {count}) AS i"
    connection.execute(f"CREATE TEMP TABLE fresh ON COMMIT DROP AS {fresh}".encode())
    for table, number_column in COPIED.items():
        asked = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'mam' AND table_name = %s"
        columns = [str(row[0]) for row in connection.execute(asked, (table,))]
        chosen = {name: f"old.{name}" for name in columns if (table, name) != ("journal", "number")}
        for name in {"fields", "lines"} & set(columns):
            chosen[name] = f"replace(old.{name}::text, '{template.job_id}', fresh.job_id)::json"
        chosen["job_id"], chosen[number_column] = "fresh.job_id", "fresh.number"
        insert = f"INSERT INTO mam.{table} ({', '.join(chosen)}) SELECT {', '.join(chosen.values())}"
        connection.execute(f"{insert} FROM mam.{table} AS old, fresh WHERE old.job_id = '{template.job_id}'".encode())
    connection.execute("DROP TABLE fresh")
