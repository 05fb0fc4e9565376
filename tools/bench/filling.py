"""Fills a store with many jobs: copies of two that were registered and worked on normally."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from mam.registry import Registry
from tools.bench.common import LABEL, PROMPT
from tools.bench.working import claim_and_complete

if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.stores.sqlite.store import SqliteStore

_FRESH = (
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
    " INSERT INTO fresh SELECT lower(hex(randomblob(16))), ? + ? * i FROM n"
)


def fill(store: SqliteStore, path: Path, *, pending: int, ended: int) -> None:
    """Ended and pending jobs take turns as far as both go."""
    registry = Registry(store)
    registry.register(prompt=PROMPT, agent="bench", label=LABEL)
    done = store.get(claim_and_complete(registry))
    waiting = registry.register(prompt=PROMPT, agent="bench", label=LABEL).job
    store.close()
    with apsw.Connection(str(path)) as database:
        database.execute("CREATE TEMP TABLE fresh (job_id TEXT, number INTEGER)")
        for template, count, offset in ((done, ended - 1, 3), (waiting, pending - 1, 4)):
            if count > 0:
                database.execute("DELETE FROM fresh")
                database.execute(_FRESH, (count, offset, 2))
                _copy(database, template)
        database.execute("UPDATE store SET mirrored_upto = (SELECT max(number) FROM journal)")
        database.execute("ANALYZE")  # with statistics a planner may go astray
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    database.close()


def _copy(database: apsw.Connection, template: Job) -> None:
    """The template's rows, once for each fresh id and number; the journal gets a short line for each."""
    columns = [str(row[1]) for row in database.execute("PRAGMA table_info(job)")]
    chosen = [f"fresh.{name}" if name in ("job_id", "number") else f"old.{name}" for name in columns]
    database.execute(
        f"INSERT INTO job ({', '.join(columns)}) SELECT {', '.join(chosen)} FROM job AS old, fresh"
        f" WHERE old.number = {template.number} ORDER BY fresh.number"
    )
    database.execute("INSERT INTO prompt SELECT number, ? FROM fresh ORDER BY number", (template.prompt,))
    database.execute(
        "INSERT INTO journal (job, job_id, fields, lines)"
        " SELECT fresh.number, fresh.job_id, json_set(old.fields, '$.number', fresh.number, '$.job_id', fresh.job_id),"
        " old.lines FROM fresh, journal AS old WHERE old.job = ? ORDER BY old.number, fresh.number",
        (template.number,),
    )
