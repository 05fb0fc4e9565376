"""A database of schema 13 gets the tables that were added since, and ends up like a new one."""

from __future__ import annotations

from pathlib import Path

import apsw

from mam.registry import Registry
from mam.stores.files.store import FilesStore
from mam.stores.sqlite import database as databases
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.conformance.base import register_jobs
from tests.cli.command import Mam

HERE = Path(__file__).parent


def of_version_13(path: Path) -> None:
    database = apsw.Connection(str(path))
    database.execute("PRAGMA journal_mode = WAL").fetchall()
    database.execute((HERE / "version_13.sql").read_text(encoding="utf-8")).fetchall()
    database.execute("INSERT INTO store (one, epoch) VALUES (1, 'e13')").fetchall()
    database.execute(f"PRAGMA application_id = {databases.APPLICATION}; PRAGMA user_version = 13").fetchall()
    database.close()
    path.chmod(0o600)


def tables(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """The columns of each table and index, whatever their order of creation and the spelling of the statement."""
    database = apsw.Connection(str(path))
    names = [str(name) for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'")]
    found = {name: database.execute(f"SELECT * FROM pragma_table_xinfo('{name}')").fetchall() for name in names}
    database.close()
    return found


def test_it_becomes_like_a_new_one(mam: Mam, tmp_path: Path) -> None:
    of_version_13(tmp_path / "old.db")
    create_sqlite_store(str(tmp_path / "new.db"))
    mam("list", "--store", f"sqlite://{tmp_path}/old.db").failed(9, f"schema 13 of {databases.VERSION}", "mam init")
    assert mam("init", "--store", f"sqlite://{tmp_path}/old.db").code == 0
    assert tables(tmp_path / "old.db") == tables(tmp_path / "new.db")
    store = SqliteStore(str(tmp_path / "old.db"))
    assert store.journal_id == "e13", "the journal goes on"
    store.close()


def test_a_files_store_is_brought_up_to_date_when_it_is_opened(tmp_path: Path) -> None:
    home = tmp_path / "jobs" / ".store"
    home.mkdir(parents=True, mode=0o700)
    of_version_13(home / "registry.db")
    store = FilesStore(str(tmp_path / "jobs"))
    register_jobs(Registry(store))
    assert store.counts() == {"pending": 1}
    store.close()
    create_sqlite_store(str(tmp_path / "new.db"))
    assert tables(home / "registry.db") == tables(tmp_path / "new.db")
