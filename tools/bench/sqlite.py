"""Claim and complete on SQLite and on files, compared with two bare commits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw

from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tools.bench.common import Measured, Row, Rows
from tools.bench.filling import fill
from tools.bench.working import claim_and_complete

ROUNDS, WARM_UP = 300, 120
PAIR_BYTES = 900
"""About what a claim and what a completion write of a job and of the journal."""


def measure_sqlite(folder: Path, counts: list[int]) -> Rows:
    stores = {f"SQLite, {count:,} jobs": filled_sqlite(folder / f"{count}.db", count) for count in counts}
    for count in counts:
        stores[f"files, {count:,} jobs"] = filled_files(folder / f"files{count}", count)
    things: dict[str, Callable[[], object]] = {
        "bare": bare_commits(folder / "bare.db"),
        **{name: partial(claim_and_complete, Registry(store)) for name, store in stores.items()},
    }
    for name, thing in things.items():
        for _ in range(WARM_UP * (4 if name == "bare" else 1)):  # a log that has been used once is overwritten
            thing()
    measured = Measured(ROUNDS, things)
    bare = measured.median("bare")
    rows: Rows = []
    for kind, budget in (("SQLite", "at most 1.8"), ("files", "at most 4")):
        first, *_, last = [name for name in stores if name.startswith(kind)]
        most = measured.median(last)
        rows.append(Row(f"{last}: claim + complete", "two bare commits", most, bare, budget))
        if first != last:
            rows.append(Row(f"{last}: claim + complete", first, most, measured.median(first), "flat"))
    for store in stores.values():
        store.close()
    return rows


def filled_sqlite(path: Path, count: int) -> SqliteStore:
    """A store of so many jobs: every other one pending, the rest ended."""
    create_sqlite_store(str(path))
    store = SqliteStore(str(path))
    fill(store, path, pending=count // 2, ended=count // 2)
    return store


def filled_files(path: Path, count: int) -> FilesStore:
    """The same; the record files of the copies are not there, which no act on another job minds."""
    create_files_store(str(path))
    store = FilesStore(str(path))
    fill(store, path / ".store" / "registry.db", pending=count // 2, ended=count // 2)
    return store


def bare_commits(path: Path) -> Callable[[], None]:
    """What any two durable changes cost in SQLite."""
    database = apsw.Connection(str(path))
    # fetchall: apsw goes on behind a statement only when its rows have been taken.
    database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL").fetchall()
    database.execute("CREATE TABLE bare (data BLOB)")
    value = (b"x" * PAIR_BYTES,)

    def commit() -> None:
        for _ in range(2):
            database.execute("BEGIN IMMEDIATE")
            database.execute("INSERT INTO bare VALUES (?)", value)
            database.execute("COMMIT")

    return commit
