"""Upgrades a database of mam 0.1.0 (schema 12), in the transaction that the caller has begun."""

from __future__ import annotations

import json

import apsw

from mam.errors import BadRecord, StoreUnavailable
from mam.jobs.record import parse_job
from mam.stores.sql.rows import column_values
from mam.util.clock import SystemClock
from mam.util.encoding import to_json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.jobs.record import Job

_TABLES = ("store", "job", "prompt", "journal", "dependency", "unsettled", "pause", "session_generation", "archive")
_INDEXES = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"

_COPIED = """
INSERT INTO store (one, epoch) SELECT 1, journal_id FROM old_store;
INSERT INTO journal (number, job, job_id, fields, lines)
SELECT number, coalesce((SELECT number FROM old_job WHERE job_id = entry.job_id),
                        (SELECT number FROM old_archive WHERE job_id = entry.job_id), 0), job_id, fields, lines
FROM old_journal AS entry ORDER BY number;
INSERT INTO dependency SELECT needs, number, job_id FROM old_dependency;
INSERT INTO unsettled SELECT root, ended, upto FROM old_unsettled;
INSERT INTO pause SELECT agent, label, until, reason, made_at, probe FROM old_pause;
INSERT INTO session_generation SELECT agent_id, generation_id, superseded FROM old_session_generation;
UPDATE job SET awaited = 1 WHERE coalesce(root, job_id) IN (SELECT needs FROM dependency);
"""


def upgrade(database: apsw.Connection, schema: str, path: str) -> None:
    for (name,) in database.execute(_INDEXES).fetchall():
        database.execute(f'DROP INDEX "{name}"')
    for table in _TABLES:
        database.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    database.execute(schema)
    _copy_jobs(database, path)
    _copy_archive(database, path)
    database.execute(_COPIED)
    _rebalance(database)
    for table in ("prompt", *(name for name in _TABLES if name != "prompt")):
        database.execute(f"DROP TABLE old_{table}")


def _copy_jobs(database: apsw.Connection, path: str) -> None:
    moment = SystemClock().now()
    for record, prompt, root in database.execute(
        "SELECT record, prompt, root FROM old_job JOIN old_prompt USING (number) ORDER BY number"
    ):
        job = _job(record, prompt, path)
        values: dict[str, Any] = {**column_values(job, moment), "root": root}
        names = ", ".join(values)
        marks = ", ".join(f":{name}" for name in values)
        database.execute(f"INSERT INTO job ({names}) VALUES ({marks})", values)  # noqa: S608
        database.execute("INSERT INTO prompt (number, prompt) VALUES (?, ?)", (job.number, prompt))


def _copy_archive(database: apsw.Connection, path: str) -> None:
    found = database.execute("SELECT record, prompt, number, key, retry_of, root, events FROM old_archive")
    for record, prompt, number, key, retry_of, root, events in found:
        job = _job(record, prompt, path)
        whole = to_json_text(job.to_json())
        database.execute(
            "INSERT INTO archive (job_id, number, key, retry_of, root, record, events) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (job.job_id, number, key, retry_of, root, whole, events),
        )


def _job(record: Any, prompt: Any, path: str) -> Job:
    try:
        return parse_job({**json.loads(record), "prompt": prompt}, path)
    except (BadRecord, ValueError, RecursionError):
        why = f"one of its records cannot be read ({str(record)[:60]}…); repair it with mam 0.1.0 first"
        raise StoreUnavailable(store=path, problem=why) from None


def _rebalance(database: apsw.Connection) -> None:
    from mam.stores.sqlite.store import QUERIES

    for (key,) in database.execute("SELECT DISTINCT exclusive FROM job WHERE exclusive IS NOT NULL").fetchall():
        for query in ("block key", "unblock heads"):
            database.execute(QUERIES[query], {"key": key})
