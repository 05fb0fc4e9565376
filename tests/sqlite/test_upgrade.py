"""A database of mam 0.1.0 is upgraded by `mam init`, with everything that is in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from mam.stores.sqlite import database as databases
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from tests.cli.command import Mam
from tests.faults.killing import at_writes, kill_points
from tests.upgrades import check_everything_is_there, check_work_goes_on

HERE = Path(__file__).parent


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.db"
    old_database(path)
    return path


def old_database(path: Path) -> None:
    database = apsw.Connection(str(path))
    database.execute("PRAGMA journal_mode = WAL").fetchall()
    database.execute((HERE / "version_12.sql").read_text(encoding="utf-8")).fetchall()
    database.execute(f"PRAGMA application_id = {databases.APPLICATION}; PRAGMA user_version = 12")
    database.close()
    path.chmod(0o600)


def test_it_is_not_touched_until_the_user_asks_for_it(mam: Mam, old: Path) -> None:
    before = old.read_bytes()
    mam("list", "--store", f"sqlite://{old}").failed(9, f"schema 12 of {databases.VERSION}", "mam init")
    mam("pick", "-s", "v1", "--store", f"sqlite://{old}").failed(9, "mam init")
    assert old.read_bytes() == before


def test_all_jobs_survive_and_work_continues(mam: Mam, old: Path) -> None:
    assert mam("init", "--store", f"sqlite://{old}").stderr == f"mam: upgraded sqlite://{old}\n"
    store = SqliteStore(str(old))
    check_everything_is_there(store)
    check_work_goes_on(store)
    store.close()
    assert create_sqlite_store(str(old)) is False, "there is nothing more to do"


def test_an_older_one_is_refused_with_one_line(mam: Mam, old: Path) -> None:
    database = apsw.Connection(str(old))
    database.execute("PRAGMA user_version = 9").fetchall()
    database.close()
    for verb in ("init", "list"):
        mam(verb, "--store", f"sqlite://{old}").failed(9, "schema 9 of a mam before 0.1.0", "mam 0.1.0")


def test_a_mam_0_1_0_that_has_it_open_is_refused(old: Path) -> None:
    """What schema 12 writes meets columns that are not there any more."""
    old_connection = apsw.Connection(str(old))
    old_connection.execute("SELECT record FROM job").fetchall()
    create_sqlite_store(str(old))
    for statement in (
        "UPDATE job SET status = 'running', record = '{}' WHERE number = 1",
        "INSERT INTO journal (job_id, fields, lines) VALUES ('x', '{}', '[]')",
    ):
        with pytest.raises(apsw.Error):
            old_connection.execute(statement)
    old_connection.close()


@pytest.mark.parametrize("wrong", ["status = 'lost'", "status = 'running', due_ms = NULL", "timeout_sec = NULL"])
def test_the_database_refuses_what_no_job_can_be(old: Path, wrong: str) -> None:
    create_sqlite_store(str(old))
    database = apsw.Connection(str(old))
    with pytest.raises(apsw.ConstraintError):
        database.execute(f"UPDATE job SET {wrong}")
    database.close()


def test_killed_at_any_write_it_is_old_or_new(tmp_path: Path) -> None:
    path = tmp_path / "old.db"

    def work(acknowledge: Callable[[str], None]) -> None:
        create_sqlite_store(str(path))
        acknowledge("done")

    old_database(path)
    steps = 0
    for _step, acknowledged in kill_points(at_writes, work):
        steps += 1
        assert not (create_sqlite_store(str(path)) and acknowledged)
        store = SqliteStore(str(path))
        check_everything_is_there(store)
        store.close()
        for left in tmp_path.glob("old.db*"):
            left.unlink()
        old_database(path)
    assert steps > 5, "the seam no longer reaches the writes"
