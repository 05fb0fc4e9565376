"""Servers that are away, refuse, are full or belong to another program: one clear line, exit 9, nothing changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from mam import __version__
from mam.errors import StoreUnavailable
from mam.registry import Registry
from mam.stores.postgres import limits
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import check_journal
from mam.testing.tasks import LABEL
from tests.cli.command import Mam, Ran
from tests.postgres.server import PrivateServer

SECRET = "Tr0ub4dor"
VERBS = (("list",), ("register", "p", "--agent", "a"), ("pick", "-s", "x"), ("complete", "x"), ("wait", "x"), ("init",))


def refused(ran: Ran, code: int, *words: str) -> None:
    ran.failed(code, *words)
    assert SECRET not in ran.stderr


# -- no server, or no access ----------------------------------------------------------------------------------------


def test_a_server_that_is_unreachable_at_the_start(mam: Mam, tmp_path: Path) -> None:
    for verb in VERBS:
        refused(mam(*verb, MAM_STORE=f"postgresql://me:{SECRET}@127.0.0.1:1/jobs"), 9, "127.0.0.1")
    refused(mam("list", "--store", f"postgresql://me:{SECRET}@/jobs?host={tmp_path}"), 9, str(tmp_path))


def test_an_unreachable_server_is_reported_as_refusing_or_missing(mam: Mam, tmp_path: Path) -> None:
    refused(mam("list", "--store", "postgresql://127.0.0.1:1/jobs"), 9, "refused")
    refused(mam("list", "--store", f"postgresql:///jobs?host={tmp_path}"), 9, "No such file")


def test_settings_that_the_driver_rejects_are_reported(mam: Mam) -> None:
    url = f"postgresql://me:{SECRET}@127.0.0.1:1/jobs?connect_timeout=x"
    refused(mam("list", "--store", url), 9, "connect_timeout")


def test_an_invalid_address_is_one_line_without_its_password(mam: Mam) -> None:
    ran = mam("list", "--store", f"postgresql://me:{SECRET}@h/jobs?nonsense=1")
    assert (ran.code, ran.out) == (2, "")
    assert SECRET not in ran.stderr
    refused(mam("list", "--store", f"mysql://me:{SECRET}@h/jobs"), 2, "mysql")


def test_a_database_that_does_not_exist(mam: Mam, server: PrivateServer) -> None:
    refused(mam("list", "--store", server.url("nowhere")), 9, "nowhere", "does not exist")


def test_a_database_without_mams_tables(mam: Mam, database: str) -> None:
    refused(mam("list", "--store", database), 9, "mam init")
    ran = mam("register", "p", "--agent", "a", "--store", database)
    assert ran.code == 0, ran.stderr
    assert mam("status", ran.line, "--store", database).line == "pending"


@pytest.fixture
def guarded(server: PrivateServer) -> Iterator[str]:
    """The address of a role that must give a password, without it."""
    url = server.empty_database()
    create_postgres_store(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS guarded; CREATE ROLE guarded LOGIN SUPERUSER PASSWORD '{SECRET}'")
        (rules,) = (Path(row[0]) for row in connection.execute("SHOW hba_file").fetchall())
        before = rules.read_text(encoding="utf-8")
        rules.write_text(f"local all guarded scram-sha-256\n{before}", encoding="utf-8")
        connection.execute("SELECT pg_reload_conf()")
        while _lets_in(url.replace("mam@", "guarded@")):
            pass  # the server has not read it yet
        yield url.replace("mam@", "guarded@")
        rules.write_text(before, encoding="utf-8")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("DROP ROLE guarded")


def _lets_in(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_password_that_is_wrong_or_missing(mam: Mam, guarded: str) -> None:
    refused(mam("list", "--store", guarded.replace("@", f":{SECRET}x@")), 9, "password authentication failed")
    refused(mam("list", "--store", guarded), 9, "wants a password and none was given", "~/.pgpass or PGPASSWORD")
    refused(mam("init", "--store", guarded.replace("@", f":{SECRET}x@")), 9, "password authentication failed")


def test_a_password_that_is_right_is_never_shown(mam: Mam, guarded: str) -> None:
    url = guarded.replace("@", f":{SECRET}@")
    job = mam("register", "p", "--agent", "a", "--store", url).line
    for words in (("register", "p", "--agent", "a"), ("list",), ("where",), ("init",), ("get", job), ("logs", "--list"),
                  ("complete", "unknown"), ("pick", "-s", "unknown"), ("explain", job)):  # fmt: skip
        ran = mam(*words, "--json", "--store", url)
        assert ran.code in (0, 1, 3), f"{words} did not reach the store: {ran.stderr}"
        assert SECRET not in ran.stderr + ran.out, words
    files = [path for path in (*mam.here.rglob("*"), *mam.home.rglob("*")) if path.is_file()]
    assert files, "nothing was written, not even the audit log"
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path


# -- another program's database ---------------------------------------------------------------------------------------


def test_a_table_of_the_same_name_in_another_schema_is_left_alone(
    mam: Mam, database: str, admin: psycopg.Connection[Any]
) -> None:
    admin.execute("CREATE SCHEMA other; CREATE TABLE other.store (version text); INSERT INTO other.store VALUES ('x')")
    admin.execute("CREATE TABLE public.store (version text); CREATE TABLE public.job (mine text)")
    try:
        refused(mam("list", "--store", database), 9, "mam init")
        assert mam("init", "--store", database).code == 0
        assert mam("register", "p", "--agent", "a", "--store", database).code == 0
        assert admin.execute("SELECT count(*) FROM public.job").fetchall() == [(0,)]
        assert admin.execute("SELECT version FROM other.store").fetchall() == [("x",)]
    finally:
        admin.execute("DROP SCHEMA other CASCADE; DROP TABLE public.store, public.job")


FOREIGN = {
    "a table `store` of other columns": "CREATE TABLE mam.store (shop text)",
    "an empty table `store`": "CREATE TABLE mam.store (version integer)",
    "a version that is no number": "CREATE TABLE mam.store (version text); INSERT INTO mam.store VALUES ('one')",
    "a table `job`": "CREATE TABLE mam.job (title text)",
    "some other table": "CREATE TABLE mam.invoice (amount numeric)",
    "a table without columns": "CREATE TABLE mam.invoice ()",
    "all three names": "CREATE TABLE mam.store (shop text); CREATE TABLE mam.job (); CREATE TABLE mam.journal ()",
}


@pytest.mark.parametrize("made", FOREIGN)
def test_a_schema_of_the_same_name_that_is_not_mams_is_refused_and_left_alone(
    mam: Mam, database: str, admin: psycopg.Connection[Any], made: str
) -> None:
    admin.execute("CREATE SCHEMA mam")
    admin.execute(FOREIGN[made].encode())
    tables = "SELECT relname FROM pg_class WHERE relnamespace = 'mam'::regnamespace ORDER BY 1"
    before = admin.execute(tables.encode()).fetchall()
    for verb in VERBS:
        ran = mam(*verb, "--store", database)
        refused(ran, 9, "its schema `mam` belongs to another program")
        assert "mam init" not in ran.stderr
        assert admin.execute(tables.encode()).fetchall() == before


def test_an_empty_schema_of_the_right_name_is_used(mam: Mam, database: str, admin: psycopg.Connection[Any]) -> None:
    """An administrator may make it for a role that may not make schemas."""
    admin.execute("CREATE SCHEMA mam")
    assert mam("init", "--store", database).code == 0
    assert mam("register", "p", "--agent", "a", "--store", database).code == 0


def test_a_newer_schema_is_refused_and_not_rewritten(mam: Mam, database: str, admin: psycopg.Connection[Any]) -> None:
    create_postgres_store(database)
    admin.execute("UPDATE mam.store SET version = 999")
    for verb in VERBS:
        ran = mam(*verb, "--store", database)
        refused(ran, 9, "999", f"only a newer mam knows; this is mam {__version__}: install a newer one")
    assert admin.execute("SELECT version FROM mam.store").fetchall() == [(999,)]


def test_an_older_schema_names_the_command_that_upgrades_it(
    mam: Mam, database: str, admin: psycopg.Connection[Any]
) -> None:
    create_postgres_store(database)
    admin.execute("UPDATE mam.store SET version = 14")
    refused(mam("list", "--store", database), 9, f"`mam init --store {database}`")


def test_the_sql_that_init_prints_creates_a_working_store(
    mam: Mam, database: str, admin: psycopg.Connection[Any]
) -> None:
    printed = mam("init", "--sql", "--store", f"postgresql://me:{SECRET}@127.0.0.1:1/away")
    assert (printed.code, printed.stderr) == (0, "")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(printed.stdout)
    assert mam("register", "p", "--agent", "a", "--store", database).code == 0
    assert mam("init", "--store", database).code == 0


# -- slow, full, read-only ---------------------------------------------------------------------------------------------


def test_a_statement_that_takes_too_long_is_an_error(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create_postgres_store(database)
    monkeypatch.setattr(limits, "STATEMENT_SECONDS", 0.1)
    store = PostgresStore(database)
    registry = Registry(store)
    registry.register(prompt="p", agent="codex", job_id="one")
    with psycopg.connect(database) as holder:
        holder.execute("SELECT FROM mam.job FOR UPDATE")
        with pytest.raises(StoreUnavailable, match=r"longer than 0\.1 s; .* hold a lock there, so try again"):
            registry.complete("one")
        assert registry.get("one").status == "pending"
        assert registry.pick("codex", owner="me") is None, "what another holds is as good as gone"
    assert registry.complete("one").status == "completed"
    check_journal(store)
    store.close()


def test_a_cancelled_statement_is_not_reported_as_slow(database: str, admin: psycopg.Connection[Any]) -> None:
    create_postgres_store(database)
    registry = Registry(PostgresStore(database))
    registry.register(prompt="p", agent="codex", job_id="one")
    waiting = "FROM pg_stat_activity WHERE application_name = 'mam' AND wait_event_type = 'Lock'"
    with psycopg.connect(database) as holder, ThreadPoolExecutor(1) as another:
        holder.execute("SELECT FROM mam.job FOR UPDATE")
        completing = another.submit(registry.complete, "one")
        while not admin.execute(f"SELECT pg_cancel_backend(pid) {waiting}".encode()).fetchall():
            pass
        with pytest.raises(StoreUnavailable, match="it was cancelled on the server"):
            completing.result()
    registry.store.close()


def test_a_server_that_became_read_only_is_reported(mam: Mam, database: str, admin: psycopg.Connection[Any]) -> None:
    create_postgres_store(database)
    admin.execute("ALTER ROLE mam SET default_transaction_read_only = on")
    try:
        refused(mam("register", "p", "--agent", "a", "--store", database), 9, "read-only")
        assert mam("list", "--store", database).code == 0
    finally:
        admin.execute("ALTER ROLE mam RESET default_transaction_read_only")


@pytest.fixture
def full_disk(server: PrivateServer) -> Iterator[tuple[str, Path]]:
    """A store whose tables lie on a small file system. Needs root, which CI has; it is never skipped there."""
    if os.geteuid() != 0 and not os.environ.get("CI"):
        pytest.skip("mounting a small file system needs root")
    url = server.empty_database()
    create_postgres_store(url)
    with TemporaryDirectory(prefix="mam-ts-") as folder, psycopg.connect(url, autocommit=True) as connection:
        os.chmod(folder, 0o755)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "tmpfs", folder], check=True)
        try:
            shutil.chown(folder, Path(str(connection.execute("SHOW data_directory").fetchall()[0][0])).owner())
            connection.execute(f"CREATE TABLESPACE small LOCATION '{folder}'".encode())
            for table in ("job", "journal"):
                connection.execute(f"ALTER TABLE mam.{table} SET TABLESPACE small".encode())
            yield url, Path(folder)
            connection.execute("DROP SCHEMA mam CASCADE")
            connection.execute("DROP TABLESPACE small")
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_refuses_acts_whole_and_recovers_when_there_is_room(
    full_disk: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, folder = full_disk
    monkeypatch.setattr(limits, "PATIENCE_SECONDS", 0.2)
    store = PostgresStore(url)
    registry = Registry(store)
    ballast = folder / "ballast"
    kept = [registry.register(prompt="small", agent="codex", label=LABEL).job.job_id]
    with open(ballast, "wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):  # noqa: PT012
        while file.write(b"x" * 65536):
            pass
    with pytest.raises(StoreUnavailable, match="disk is full"):  # noqa: PT012
        for _ in range(1000):
            kept.append(registry.register(prompt=os.urandom(20_000).hex(), agent="codex", label=LABEL).job.job_id)
    check_journal(store)
    assert len(store.ids_with_prefix("", 2000)) == len(kept)
    ballast.unlink()
    assert registry.register(prompt="p" * 40_000, agent="codex", label=LABEL).created
    assert registry.pick(LABEL, owner="me") is not None
    check_journal(store)
    store.close()
