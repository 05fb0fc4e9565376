"""Claim and complete on SQLite against two commits that do nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import apsw

from mam.jobs.record import Job
from mam.registry import Registry
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tools.bench.common import Measured, Row, Rows
from tools.bench.working import claim_and_complete, numbered, two_templates

TURNS, RESTED_TURNS = 300, 150
REST_SECONDS = 0.03
"""As workers have it, whose pairs stand alone: the processor has done something else meanwhile."""
WARM_UP = {"bare": 600, "pages": 120}
"""How often the bare commits are done before, and mam's as often as those of as many pages: a log that has been used
once is overwritten, which takes half as long to sync as one that still grows, and the more pages, the sooner it is
full."""

PAGES = 3
"""That mam's two acts write each: the job, the journal, and the index of lines."""

COPIED = {"job": ("told",), "prompt": (), "journal": ("number", "told")}
"""The tables that hold something of a job, and what of a copied row is given anew."""


def measure_sqlite(folder: Path, counts: list[int]) -> Rows:
    stores = {f"{count:,}": filled_sqlite(folder / f"{count}.db", count) for count in counts}
    others = filled_sqlite(folder / "results.db", counts[-1])
    claim_bytes, complete_bytes = written_bytes(folder / f"{counts[0]}.db", stores[f"{counts[0]:,}"])
    things: dict[str, Callable[[], object]] = {
        "bare": bare_commits(folder / "bare.db", 1, claim_bytes, complete_bytes),
        "pages": bare_commits(folder / "pages.db", PAGES, claim_bytes, complete_bytes),
        **{count: partial(claim_and_complete, Registry(store)) for count, store in stores.items()},
        "results": partial(with_a_result, Registry(others), itertools.count(1)),
    }
    for name, thing in things.items():
        for _ in range(WARM_UP.get(name, WARM_UP["pages"])):
            thing()
    measured = Measured(TURNS, things)
    least, *_, most = stores
    rested = Measured(RESTED_TURNS, {name: things[name] for name in ("bare", most)}, REST_SECONDS)
    against = f"two bare FULL commits of {claim_bytes} and {complete_bytes} bytes"
    rows: Rows = [
        Row(
            f"SQLite: claim + complete, {count} jobs", against, measured.median(count), measured.median("bare"),
            "at most 1.6",
        )
        for count in stores
    ]  # fmt: skip
    what = f"SQLite: claim + complete, {most} jobs"
    rows += [
        Row(
            what, f"two bare FULL commits of as many bytes and pages ({PAGES} each)",
            measured.median(most), measured.median("pages"), "none set",
        ),
        Row(
            f"{what}, each with another result", against,
            measured.median("results"), measured.median("bare"), "none set",
        ),
        Row(
            f"{what}, each after a rest of {REST_SECONDS * 1000:.0f} ms", f"{against}, after such a rest too",
            rested.median(most), rested.median("bare"), "none set",
        ),
        Row(what, f"claim + complete, {least} jobs", measured.median(most), measured.median(least), "flat"),
    ]  # fmt: skip
    for store in (*stores.values(), others):
        store.close()
    return rows


def with_a_result(registry: Registry, numbers: Iterator[int]) -> None:
    """What is told with it is another each time, so that no completion can be said again."""
    claim_and_complete(registry, result=f"done, and it was number {next(numbers)}")


def filled_sqlite(path: Path, count: int) -> SqliteStore:
    """A store of so many jobs: every other one pending, the rest ended."""
    create_sqlite_store(str(path))
    store = SqliteStore(str(path))
    pending, ended = two_templates(store)
    with apsw.Connection(str(path)) as database:
        database.execute("CREATE TEMP TABLE fresh (job_id TEXT, number INTEGER)")
        for template, odd in ((pending, 0), (ended, 1)):
            fill = (
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                " INSERT INTO fresh SELECT lower(hex(randomblob(16))), 2 * i + 1 + ? FROM n"
            )
            database.execute("DELETE FROM fresh")
            database.execute(fill, (count // 2 - 1, odd))
            for table, given in COPIED.items():
                _copy(database, table, given, template)
        database.execute("ANALYZE")  # with statistics a planner may go astray
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    database.close()
    return store


def _copy(database: apsw.Connection, table: str, given: tuple[str, ...], template: Job) -> None:
    """The template's rows of one table, once for each fresh id."""
    columns = [str(row[1]) for row in database.execute(f"PRAGMA table_info({table})") if row[1] not in given]
    chosen = {name: f"old.{name}" for name in columns}
    for name in {"record", "fields", "lines", "event"} & set(columns):
        renamed = f"replace(old.{name}, '{template.job_id}', fresh.job_id)"
        chosen[name] = numbered(renamed, template.number)
    for name in {"job_id", "number"} & set(columns):
        chosen[name] = f"fresh.{name}"
    order = "ORDER BY old.number, fresh.number" if table == "journal" else ""  # what happened first stands first
    database.execute(
        f"INSERT INTO {table} ({', '.join(chosen)}) SELECT {', '.join(chosen.values())}"
        f" FROM {table} AS old, fresh WHERE {_of_job(columns, template)} {order}"
    )


def _of_job(columns: list[str], template: Job) -> str:
    """The template's rows, by whatever the table knows a job by."""
    return f"old.job_id = '{template.job_id}'" if "job_id" in columns else f"old.number = {template.number}"


def written_bytes(path: Path, store: SqliteStore) -> tuple[int, int]:
    """How much the two acts write of one job: its record each time, and what the journal says."""
    job_id = claim_and_complete(Registry(store))
    with apsw.Connection(str(path)) as database:
        record = _number(database, "SELECT octet_length(record) FROM job WHERE job_id = ?", job_id)
        entry = "SELECT octet_length(fields) + octet_length(lines) FROM journal WHERE job_id = ? ORDER BY number"
        claimed, completed = [int(str(row[0])) for row in database.execute(entry, (job_id,))][-2:]
    database.close()
    return record + claimed, record + completed


def _number(database: apsw.Connection, query: str, job_id: str) -> int:
    return int(str(database.execute(query, (job_id,)).fetchall()[0][0]))


def bare_commits(path: Path, pages: int, *sizes: int) -> Callable[[], None]:
    """What any two durable changes cost in SQLite that write so many pages each."""
    database = apsw.Connection(str(path))
    tables = [f"bare{page}" for page in range(pages)]
    # fetchall: apsw goes on behind a statement only when its rows have been taken.
    database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL").fetchall()
    for table in tables:
        database.execute(f"CREATE TABLE {table} (data BLOB)")
    values = [(b"x" * (size // pages),) for size in sizes]

    def commit() -> None:
        for value in values:
            database.execute("BEGIN IMMEDIATE")
            for table in tables:
                database.execute(f"INSERT INTO {table} VALUES (?)", value)
            database.execute("COMMIT")

    return commit
