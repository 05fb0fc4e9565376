"""A worker continues if its store rejects its entry in the list of workers."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.work import presence
from tests.waiting import await_that
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_worker_that_cannot_be_listed_reports_it_and_runs_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "FIRST_SECONDS", 0.0)
    path = tmp_path / "jobs.db"
    create_sqlite_store(str(path))
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE worker")
    harness = Harness(SqliteStore(str(path)), tmp_path)

    with harness.at_work():
        await_that(
            lambda: any("does not show this worker" in line for line in harness.said), "the worker reports nothing"
        )
        job = harness.job("true")
        await_that(lambda: harness.get(job).status == "completed", "the job does not run")
