"""Files that are not mam's, not yours, not writable, locked or oddly named: one clear line, and nothing is changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

import apsw
import pytest

from mam import __version__
from mam.errors import StoreUnavailable
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.conformance.base import check_journal, register_jobs
from tests.cli.command import Mam
from tests.sqlite.conftest import StoreFile

VERBS = (("list",), ("register", "p", "--agent", "a"), ("pick", "-s", "x"), ("complete", "x"), ("init",))


def check_refused_and_untouched(mam: Mam, path: Path, *words: str, code: int = 9) -> None:
    """By every verb with the same words, and without a byte of the file being changed."""
    before = path.read_bytes()
    for verb in VERBS:
        mam(*verb, "--store", f"sqlite://{path}").failed(code, str(path), *words)
        assert path.read_bytes() == before


# -- what is in it -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contents", [b"a letter, not a database\n" * 100, b"\0" * 4096, b"SQLite format 2\0" * 300])
def test_a_file_that_is_not_sqlite(mam: Mam, tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "letter.txt"
    path.write_bytes(contents)
    check_refused_and_untouched(mam, path, "not an SQLite database")


def test_a_database_of_another_program_is_rejected(mam: Mam, tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    database = apsw.Connection(str(path))
    database.execute("PRAGMA application_id = 1234; CREATE TABLE job (title); INSERT INTO job VALUES ('mine')")
    database.close()
    mam("list", "--store", f"sqlite://{path}").failed(9, "another program")
    mam("init", "--store", f"sqlite://{path}").failed(9, "another program")
    assert contents(path) == [("mine",)]


def test_a_database_of_another_program_that_has_no_number(mam: Mam, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    database = apsw.Connection(str(path))
    database.execute("CREATE TABLE job (title); INSERT INTO job VALUES ('mine'); PRAGMA user_version = 1")
    database.close()
    mam("register", "p", "--agent", "a", "--store", f"sqlite://{path}").failed(9, "another program")
    assert contents(path) == [("mine",)]


def test_a_database_of_another_program_is_not_changed_by_a_byte(mam: Mam, tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    database = apsw.Connection(str(path))
    database.execute("PRAGMA application_id = 1234; CREATE TABLE job (title)")
    database.close()
    check_refused_and_untouched(mam, path, "another program")


def contents(path: Path) -> list[tuple[object, ...]]:
    database = apsw.Connection(str(path))
    try:
        return list(database.execute("SELECT title FROM job").fetchall())
    finally:
        database.close()


def test_a_newer_schema_is_refused_and_not_rewritten(mam: Mam, store_file: StoreFile) -> None:
    database = apsw.Connection(str(store_file.path))
    database.execute("PRAGMA user_version = 999")
    database.close()
    for verb in VERBS:
        ran = mam(*verb, "--store", store_file.address)
        ran.failed(9, "999", f"only a newer mam knows; this is mam {__version__}: install a newer one")
    database = apsw.Connection(str(store_file.path))
    assert database.pragma("user_version") == 999
    database.close()


@pytest.mark.parametrize("size", [100, 4096, 5000, 20_000])
def test_a_file_that_was_cut_off_is_refused_in_one_line(mam: Mam, store_file: StoreFile, size: int) -> None:
    register_jobs(store_file.open(), 20)
    store_file.close()
    os.truncate(store_file.path, size)
    for verb in (("list",), ("register", "p", "--agent", "a")):
        ran = mam(*verb, "--store", store_file.address)
        ran.failed(9, str(store_file.path))


def test_an_empty_file_becomes_a_store_only_when_asked_for(mam: Mam, tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    mam("list", "--store", f"sqlite://{path}").failed(9, str(path))
    assert mam("init", "--store", f"sqlite://{path}").code == 0
    assert mam("list", "--store", f"sqlite://{path}").code == 0


def test_an_empty_file_is_a_store_that_is_only_just_being_made(mam: Mam, tmp_path: Path) -> None:
    """The first of two that register at once has made the file and not yet what is in it."""
    path = tmp_path / "empty.db"
    path.touch()
    mam("list", "--store", f"sqlite://{path}").failed(9, "mam init")
    assert mam("register", "p", "--agent", "a", "--store", f"sqlite://{path}").code == 0


def test_the_sql_that_init_prints_creates_a_working_store(mam: Mam, tmp_path: Path) -> None:
    path = tmp_path / "by-hand.db"
    printed = mam("init", "--sql", "--store", f"sqlite://{path}")
    assert (printed.code, path.exists()) == (0, False)
    as_json = mam("init", "--sql", "--json", "--store", f"sqlite://{path}").json
    assert as_json == {"store": f"sqlite://{path}", "sql": printed.out}
    database = apsw.Connection(str(path))
    for _row in database.execute(printed.out):
        pass
    database.close()
    assert mam("register", "p", "--agent", "a", "--store", f"sqlite://{path}").code == 0


# -- where it is -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["with space.db", "이름.db", "what?mode=memory.db", "100%41.db", "#1.db", "a'b\"c.db", "-x"]
)
def test_odd_names_are_names(mam: Mam, tmp_path: Path, name: str) -> None:
    path = tmp_path / "odd place" / name
    assert mam("init", "--store", f"sqlite://{path}").line == f"sqlite://{path}"
    job = mam("register", "p", "--agent", "shell", "--store", f"sqlite://{path}").line
    assert mam("pick", "-s", "shell", "--store", f"sqlite://{path}").line == job
    made = {file.name for file in path.parent.iterdir() if file.is_file()}
    assert name in made
    assert all(file.startswith(name) for file in made)


@pytest.mark.parametrize("address", ["sqlite://jobs.db", "sqlite://", "sqlite:///", "sqlite:///tmp/", "sqlite://./x"])
def test_an_address_without_a_whole_path_is_refused(mam: Mam, address: str) -> None:
    mam("list", "--store", address).failed(2, "whole path")


def test_a_file_that_is_not_there(mam: Mam, tmp_path: Path) -> None:
    mam("list", "--store", f"sqlite://{tmp_path}/none.db").failed(9, "mam init")
    assert not (tmp_path / "none.db").exists()


def test_a_directory_is_no_database(mam: Mam, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for verb in VERBS:
        mam(*verb, "--store", f"sqlite://{tmp_path}/folder").failed(9, "folder: is a directory")
    mam("list", "--store", f"sqlite://{tmp_path}/file/below.db").failed(9)


def test_below_a_file_there_is_no_room(mam: Mam, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    mam("init", "--store", f"sqlite://{tmp_path}/file/jobs.db").failed(9, "not a directory")


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_a_device_is_no_database(mam: Mam, device: str) -> None:
    mam("list", "--store", f"sqlite://{device}").failed(9, device)
    mam("register", "p", "--agent", "a", "--store", f"sqlite://{device}").failed(9, device)


def test_a_pipe_is_no_database(mam: Mam, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    mam("list", "--store", f"sqlite://{tmp_path}/pipe").failed(9, "pipe")


def test_files_are_private(store_file: StoreFile) -> None:
    register_jobs(store_file.open())
    for file in store_file.path.parent.glob("jobs.db*"):
        assert file.stat().st_mode & 0o077 == 0, file


# -- links: followed to where they lead, so that all names of a file share its logs ------------------------------------


def test_a_link_is_followed_and_the_logs_lie_beside_the_file_it_leads_to(store_file: StoreFile, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(store_file.path)
    through, direct = SqliteStore(str(link)), SqliteStore(str(store_file.path))
    assert through.address == direct.address
    registry = store_file.open()
    register_jobs(registry, job_id="one")
    assert through.get("one") == direct.get("one")
    assert [file.name for file in link.parent.iterdir()] == ["link.db"]
    through.close()
    direct.close()


def test_a_link_that_leads_nowhere_makes_no_file_for_those_who_only_look(mam: Mam, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "nowhere.db")
    mam("list", "--store", f"sqlite://{tmp_path}/link.db").failed(9, "mam init")
    assert not (tmp_path / "nowhere.db").exists()


def test_a_circular_link_is_reported(mam: Mam, tmp_path: Path) -> None:
    (tmp_path / "a.db").symlink_to(tmp_path / "b.db")
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    mam("list", "--store", f"sqlite://{tmp_path}/a.db").failed(9)
    mam("init", "--store", f"sqlite://{tmp_path}/a.db").failed(9, "cannot be made")


def test_a_bell_that_is_a_link_is_not_rung_through(store_file: StoreFile, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"precious")
    Path(f"{store_file.path}-bell").symlink_to(target)
    register_jobs(store_file.open())
    assert target.read_bytes() == b"precious"


def test_a_log_that_is_a_link_is_not_written_through(store_file: StoreFile, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"precious")
    store_file.close()
    Path(f"{store_file.path}-wal").symlink_to(target)
    with pytest.raises(StoreUnavailable):
        register_jobs(store_file.open())
    assert target.read_bytes() == b"precious"


# -- whose it is -------------------------------------------------------------------------------------------------------


def needs_root() -> None:
    """CI runs as root; it is never skipped there."""
    if os.geteuid() != 0 and not os.environ.get("CI"):
        pytest.skip("giving a file to another user needs root")


def test_a_file_of_another_user_is_refused(mam: Mam, store_file: StoreFile) -> None:
    needs_root()
    store_file.close()
    shutil.chown(store_file.path, "nobody")
    check_refused_and_untouched(
        mam, store_file.path, "another user", str(store_file.path.stat().st_uid), "mam trust", code=1
    )


@pytest.mark.parametrize("mode", [0o400, 0o000])
def test_an_unwritable_file_is_reported(store_file: StoreFile, mode: int) -> None:
    needs_root()
    register_jobs(store_file.open(), job_id="one")
    store_file.close()
    store_file.path.chmod(mode)
    said = as_nobody(store_file, "Registry(SqliteStore(path)).register(prompt='p', agent='a')")
    assert said.startswith("StoreUnavailable")
    assert "\n" not in said
    give_to(store_file, 0)
    store_file.path.chmod(0o600)
    assert store_file.open().store.ids_with_prefix("", 9) == ["one"]


def test_an_unwritable_directory_is_reported(store_file: StoreFile) -> None:
    needs_root()
    register_jobs(store_file.open(), job_id="one")
    store_file.close()
    store_file.path.parent.chmod(0o555)
    said = as_nobody(store_file, "Registry(SqliteStore(path)).register(prompt='p', agent='a')")
    assert said.startswith("StoreUnavailable")
    store_file.path.parent.chmod(0o700)


def as_nobody(store_file: StoreFile, code: str) -> str:
    """What mam prints to a process without root's rights that owns the file."""
    give_to(store_file, 65534)
    for folder in store_file.path.parents:
        if folder.stat().st_uid == os.geteuid() and Path(gettempdir()) in folder.parents:
            folder.chmod(folder.stat().st_mode | 0o055)
    program = (
        "import os, sys; path = sys.argv[1]\n"
        "from mam.registry import Registry\nfrom mam.stores.sqlite.store import SqliteStore\n"
        "import mam.jobs.draft\n"
        "os.setgid(65534); os.setuid(65534)\n"
        f"try:\n    {code}\nexcept Exception as error:\n    print(type(error).__name__, error, end='')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(store_file.path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stderr == ""
    return ran.stdout


def give_to(store_file: StoreFile, user: int) -> None:
    for file in store_file.path.parent.glob("jobs.db*"):
        os.chown(file, user, -1)


# -- locked ------------------------------------------------------------------------------------------------------------


@contextmanager
def locked_by_another_process(store_file: StoreFile) -> Iterator[None]:
    program = (
        "import apsw, sys; database = apsw.Connection(sys.argv[1]); database.execute('BEGIN IMMEDIATE')\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(store_file.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield
        finally:
            holder.kill()


def test_a_database_that_others_keep_locked_is_waited_for_only_so_long(mam: Mam, store_file: StoreFile) -> None:
    register_jobs(store_file.open(), job_id="one")
    store_file.close()
    config = mam.home / "config" / "mam"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("lock_wait_seconds = 0.1\n", encoding="utf-8")
    with locked_by_another_process(store_file):
        mam("register", "p", "--agent", "a", "--store", store_file.address).failed(9, "locked for 0.1 s")
        mam("pick", "-s", "x", "--store", store_file.address).failed(9, "locked for 0.1 s")
        mam("complete", "one", "--store", store_file.address).failed(9, "locked for 0.1 s")
        mam("init", "--store", store_file.address).failed(9, "locked for 0.1 s")
        assert mam("status", "one", "--store", store_file.address).line == "pending", "readers need no lock"
        assert len(mam("list", "--json", "--store", store_file.address).json) == 1
    assert mam("complete", "one", "--store", store_file.address).code == 0
    check_journal(store_file.open().store)


def test_a_store_made_twice_at_once_is_made_once(tmp_path: Path, mam: Mam) -> None:
    path = tmp_path / "new.db"
    processes = [mam.start("register", f"p{turn}", "--agent", "a", "--store", f"sqlite://{path}") for turn in range(6)]
    for process in processes:
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0] * 6
    store = SqliteStore(str(path))
    assert len(store.ids_with_prefix("", 9)) == 6
    check_journal(store)
    store.close()
    assert not create_sqlite_store(str(path))
