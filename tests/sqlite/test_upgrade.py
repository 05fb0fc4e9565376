"""A database of an older version is brought up to date by `mam init`, with everything that is in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from mam.stores.sqlite import database as databases
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tests.cli.command import Mam
from tests.faults.killing import at_writes, kill_points
from tests.upgrades import check_everything_is_there, check_work_goes_on, data_of

HERE = Path(__file__).parent


def old_database(path: Path, version: int) -> None:
    database = apsw.Connection(str(path))
    folder = Path(databases.__file__).parent
    schemas = [(folder / name).read_text(encoding="utf-8") for name in databases.SCHEMAS[:version]]
    written, data = data_of(version, HERE)
    for script in (
        "PRAGMA journal_mode = WAL",
        *schemas[:written],
        data.read_text(encoding="utf-8"),
        *schemas[written:],
    ):
        database.execute(script).fetchall()
    database.execute(f"PRAGMA application_id = {databases.APPLICATION}; PRAGMA user_version = {version}")
    database.close()


@pytest.fixture(params=range(1, len(databases.SCHEMAS)))
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def old(tmp_path: Path, version: int) -> Path:
    path = tmp_path / "old.db"
    old_database(path, version)
    path.chmod(0o600)
    return path


def test_it_is_not_touched_until_somebody_asks_for_it(mam: Mam, old: Path, version: int) -> None:
    before = old.read_bytes()
    mam("list", "--store", f"sqlite://{old}").failed(9, f"schema {version} of {len(databases.SCHEMAS)}", "mam init")
    mam("pick", "-s", "v1", "--store", f"sqlite://{old}").failed(9, "mam init")
    assert old.read_bytes() == before


def test_everything_is_there_afterwards_and_work_goes_on(mam: Mam, old: Path, version: int) -> None:
    assert mam("init", "--store", f"sqlite://{old}").stderr == f"mam: sqlite://{old} is brought up to date\n"
    store = SqliteStore(str(old))
    check_everything_is_there(store, version)
    check_work_goes_on(store, version)
    store.close()
    assert create_sqlite_store(str(old)) is False, "there is nothing more to do"


def test_a_lease_of_an_earlier_boot_goes_by_the_wall_clock(old: Path) -> None:
    create_sqlite_store(str(old))
    database = apsw.Connection(str(old))
    database.execute(
        "UPDATE job SET due_ms = 1000, record = replace(record, '2094-', '2004-') WHERE status = 'running'"
    )
    database.close()
    store = SqliteStore(str(old))
    assert "running0" in [job.job_id for job in store.sweep()]
    store.close()


@pytest.mark.parametrize("wrong", ["status = 'lost'", "status = 'running', due_ms = NULL", "status = NULL"])
def test_the_database_still_refuses_what_no_job_can_be(old: Path, wrong: str) -> None:
    create_sqlite_store(str(old))
    database = apsw.Connection(str(old))
    with pytest.raises(apsw.ConstraintError):
        database.execute(f"UPDATE job SET {wrong}")
    for status in ("pending", "waiting", "completed", "error", "cancelled"):
        database.execute("UPDATE job SET status = ? WHERE exclusive IS NULL", (status,))
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()


def test_who_had_it_open_before_and_knows_no_columns_of_keys_is_refused(tmp_path: Path) -> None:
    """What schema 10 says still runs; but it would leave a key held that nobody holds, or let two run under it."""
    path = tmp_path / "old.db"
    old_database(path, 10)
    old = apsw.Connection(str(path))
    for number, status in ((901, "running"), (902, "pending")):
        old.execute(
            "INSERT INTO job (number, job_id, status, label, agent, priority, blocked, created_at, due_ms, exclusive,"
            " record) VALUES (?1, 'keyed' || ?1, ?2, 'v1', 'a', 0, 1, '', 1, 'key', '{}')",
            (number, status),
        )
    create_sqlite_store(str(path))
    for number, status in ((901, "completed"), (902, "running")):
        with pytest.raises(apsw.ConstraintError, match="exclusive IS NULL OR"):
            old.execute("UPDATE job SET status = ?, due_ms = 1 WHERE number = ?", (status, number))
    known = old.execute("SELECT waits_for_key, holds_key FROM job WHERE number > 900 ORDER BY number").fetchall()
    assert known == [(None, "key"), ("key", None)]
    old.close()


def test_no_update_of_a_job_makes_a_table_for_itself(old: Path) -> None:
    """A check against a list of words would, and would take as long as all the rest of the update."""
    create_sqlite_store(str(old))
    database = apsw.Connection(str(old))
    steps = database.execute("EXPLAIN UPDATE job SET status = 'completed', due_ms = 1, record = ''").fetchall()
    assert "OpenEphemeral" not in {step[1] for step in steps}
    database.close()


def test_what_was_told_of_a_job_that_came_from_elsewhere_begins_there(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old_database(path, 6)
    told = {"schema_version": 1, "seq": 1, "job_id": "running0", "event": "progress", "detail": "told elsewhere"}
    lines = [{"event": "migrated", "job_id": "running0"}, {"event": "published", "job_id": "running0", "payload": told}]
    database = apsw.Connection(str(path))
    database.execute("INSERT INTO journal (job_id, fields, lines) VALUES ('running0', NULL, ?)", (json.dumps(lines),))
    database.close()
    create_sqlite_store(str(path))
    store = SqliteStore(str(path))
    assert store.events("running0") == [told]
    assert [event["event"] for event in store.events("finished")] == ["completed"]
    store.close()


def test_killed_at_any_write_it_is_old_or_new(tmp_path: Path, version: int) -> None:
    path = tmp_path / "old.db"

    def work(acknowledge: Callable[[str], None]) -> None:
        create_sqlite_store(str(path))
        acknowledge("done")

    old_database(path, version)
    steps = 0
    for _step, acknowledged in kill_points(at_writes, work):
        steps += 1
        assert not (create_sqlite_store(str(path)) and acknowledged)
        store = SqliteStore(str(path))
        check_everything_is_there(store, version)
        store.close()
        for left in tmp_path.glob("old.db*"):
            left.unlink()
        old_database(path, version)
    assert steps > 5, "the seam no longer reaches the writes"
