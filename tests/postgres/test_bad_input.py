"""Servers that are away, refuse, are full or belong to somebody else: one clear line, exit 9, nothing changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from mam.errors import StoreUnavailable
from mam.jobs.pause import Pause
from mam.registry import Registry
from mam.stores.postgres import acting as postgres
from mam.stores.postgres import connection as wire
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import check_journal, registered
from mam.testing.tasks import LABEL
from tests.cli.command import Mam, Ran
from tests.postgres.server import PrivateServer
from tests.stories import READERS, WRITERS, Cast

SECRET = "Tr0ub4dor"
VERBS = (("list",), ("register", "p", "--agent", "a"), ("pick", "-s", "x"), ("complete", "x"), ("wait", "x"), ("init",))

STORES = (Path(__file__).resolve().parents[2] / "docs" / "stores.md").read_text(encoding="utf-8")
GRANTS = STORES.partition("```sql\n")[2].partition("```")[0]
"""What the documentation tells an administrator to type."""
"""All that a role needs that only works: no right to make or change the schema, nor to delete jobs or what is told of
them."""


@pytest.fixture
def admin(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def refused(ran: Ran, code: int, *words: str) -> None:
    ran.failed(code, *words)
    assert SECRET not in ran.stderr


# -- nobody there, or not for you ------------------------------------------------------------------------------------


def test_a_server_that_is_away_at_the_start(mam: Mam, tmp_path: Path) -> None:
    for verb in VERBS:
        refused(mam(*verb, MAM_STORE=f"postgresql://me:{SECRET}@127.0.0.1:1/jobs"), 9, "127.0.0.1")
    refused(mam("list", "--store", f"postgresql://me:{SECRET}@/jobs?host={tmp_path}"), 9, str(tmp_path))


def test_a_server_that_is_away_is_said_to_refuse_or_not_to_be_there(mam: Mam, tmp_path: Path) -> None:
    refused(mam("list", "--store", "postgresql://127.0.0.1:1/jobs"), 9, "refused")
    refused(mam("list", "--store", f"postgresql:///jobs?host={tmp_path}"), 9, "No such file")


def test_an_address_that_is_none(mam: Mam) -> None:
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
    refused(mam("list", "--store", guarded), 9, "no password supplied")
    refused(mam("init", "--store", guarded.replace("@", f":{SECRET}x@")), 9, "password authentication failed")


def test_a_password_that_is_right_is_never_shown(mam: Mam, guarded: str) -> None:
    url = guarded.replace("@", f":{SECRET}@")
    for words in (("register", "p", "--agent", "a", "--job-id", "one"), ("list",), ("where",), ("init",),
                  ("get", "one"), ("complete", "nobody"), ("pick", "-s", "nobody"), ("logs", "--list"),
                  ("explain", "one")):  # fmt: skip
        ran = mam(*words, "--json", "--store", url)
        assert SECRET not in ran.stderr + ran.out, words
    for path in mam.here.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


# -- rights ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def worker(database: str, admin: psycopg.Connection[Any]) -> Iterator[str]:
    """The address of a role that has no rights yet, in a database with mam's tables."""
    create_postgres_store(database)
    admin.execute("DROP ROLE IF EXISTS worker; CREATE ROLE worker LOGIN")
    yield psycopg.conninfo.make_conninfo(database, user="worker")
    admin.execute("DROP OWNED BY worker CASCADE; DROP ROLE worker")


def address_for(role: str, database: str) -> str:
    return database.replace("//mam@", f"//{role}@")


def test_a_role_that_only_works_needs_no_right_to_make_anything(
    database: str, worker: str, admin: psycopg.Connection[Any]
) -> None:
    admin.execute(GRANTS.encode())
    store = PostgresStore(address_for("worker", database))
    for name, verb in {**WRITERS, **READERS}.items():
        registry = Registry(store)
        verb(registry, Cast(registry, name))
    registry = Registry(store)
    (first,) = registered(registry, exclusive="gpu")
    registered(registry, after=[first])
    registry.pause(Pause(agent="codex"))
    assert registry.resume("codex", None)
    registry.complete(first)
    assert registry.sweep() != []
    store.keep_secrets(first, {"auth_token": "t"})
    assert store.secrets(first) == {"auth_token": "t"}
    store.wait(store.end(), 0.01)
    assert store.wait(store.end(), 0.01) is False
    assert store.due_in() is not None
    check_journal(store)
    store.close()
    with psycopg.connect(address_for("worker", database), autocommit=True) as connection:
        for forbidden in ("CREATE TABLE mam.x ()", "DROP TABLE mam.job", "DELETE FROM mam.journal", "TRUNCATE mam.job"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(forbidden.encode())


def test_the_command_works_for_a_role_that_only_works(
    mam: Mam, database: str, worker: str, admin: psycopg.Connection[Any]
) -> None:
    admin.execute(GRANTS.encode())
    url = address_for("worker", database)
    job = mam("register", "p", "--agent", "shell", "--store", url).line
    assert mam("pick", "-s", "shell", "--store", url).line == job
    mam("complete", job, "--result", "r", "--store", url)
    assert mam("result", job, "--store", url).line == "r"
    assert mam("init", "--store", url).code == 0, "there is nothing to make"


def test_the_directory_works_for_a_role_that_only_works(
    mam: Mam, database: str, worker: str, admin: psycopg.Connection[Any]
) -> None:
    admin.execute(GRANTS.encode())
    mam.env["MAM_STORE"] = address_for("worker", database)
    published = ("agents", "publish", "gpu", "--session", "gpu", "--manifest", "/m.json")
    agent, generation = mam(*published).line.split("\t")
    mine: dict[str, Any] = {"MAM_AGENT_ID": agent, "MAM_GENERATION": generation}
    job = mam("register", "p", "--agent", "shell").line
    assert mam("pick", "-s", "shell", **mine).line == job
    assert mam("agents", "refresh", "gpu", "--lease", "1s", **mine).code == 0
    while (again := mam(*published)).code == 4:
        pass  # until its lease is over
    assert "1 job" in again.stderr
    mam("pick", "-s", "shell", **mine).failed(4, generation)
    assert mam("agents", "remove", "gpu", MAM_GENERATION=again.out.split()[1]).line == agent
    admin.execute("INSERT INTO mam.agent_record VALUES ('bad', 'g', 'n', 'no record', 0)")
    assert mam("agents", "cleanup").line.startswith("applied\tbad")


def test_a_role_without_any_right_is_told_so(mam: Mam, database: str, worker: str) -> None:
    for verb in (("list",), ("register", "p", "--agent", "a"), ("init",)):
        refused(mam(*verb, "--store", address_for("worker", database)), 9)


def test_a_role_that_may_only_read_is_told_so_and_changes_nothing(
    mam: Mam, database: str, worker: str, admin: psycopg.Connection[Any]
) -> None:
    admin.execute("GRANT USAGE ON SCHEMA mam TO worker; GRANT SELECT ON ALL TABLES IN SCHEMA mam TO worker")
    Registry(PostgresStore(database)).register(prompt="p", agent="shell", job_id="one")
    url = address_for("worker", database)
    assert mam("status", "one", "--store", url).line == "pending"
    assert len(mam("list", "--store", url, "--json").json) == 1
    refused(mam("complete", "one", "--store", url), 9, "this role may not")
    refused(mam("pick", "-s", "shell", "--store", url), 9, "this role may not")
    refused(mam("register", "p", "--agent", "shell", "--store", url), 9, "this role may not")
    assert mam("status", "one", "--store", url).line == "pending"


def test_a_role_that_may_not_make_a_schema_is_told_so(
    mam: Mam, database: str, worker: str, admin: psycopg.Connection[Any]
) -> None:
    admin.execute("DROP SCHEMA mam CASCADE")
    refused(mam("init", "--store", address_for("worker", database)), 9, "this role may not")


# -- somebody else's database ------------------------------------------------------------------------------------------


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
}


@pytest.mark.parametrize("made", FOREIGN)
def test_a_schema_of_the_same_name_that_is_not_mams_is_refused_and_left_alone(
    mam: Mam, database: str, admin: psycopg.Connection[Any], made: str
) -> None:
    admin.execute("CREATE SCHEMA mam")
    admin.execute(FOREIGN[made].encode())
    tables = "SELECT relname FROM pg_class WHERE relnamespace = 'mam'::regnamespace ORDER BY 1"
    before = admin.execute(tables.encode()).fetchall()
    for verb in (("list",), ("register", "p", "--agent", "a"), ("init",)):
        ran = mam(*verb, "--store", database)
        refused(ran, 9)
        assert any(letter.isalpha() for letter in ran.stderr.rpartition(": ")[2]), f"it says nothing: {ran.stderr}"
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
        refused(mam(*verb, "--store", database), 9, "999", "newer mam")
    assert admin.execute("SELECT version FROM mam.store").fetchall() == [(999,)]


def test_an_older_schema_says_how_to_bring_it_up_to_date(
    mam: Mam, database: str, admin: psycopg.Connection[Any]
) -> None:
    create_postgres_store(database)
    admin.execute("UPDATE mam.store SET version = 0")
    refused(mam("list", "--store", database), 9, "mam init")


def test_what_init_prints_makes_a_store_that_works(mam: Mam, database: str, admin: psycopg.Connection[Any]) -> None:
    printed = mam("init", "--sql", "--store", f"postgresql://me:{SECRET}@127.0.0.1:1/away")
    assert (printed.code, printed.stderr) == (0, "")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(printed.stdout)
    assert mam("register", "p", "--agent", "a", "--store", database).code == 0
    assert mam("init", "--store", database).code == 0


# -- slow, full, read-only ---------------------------------------------------------------------------------------------


def test_a_statement_that_takes_too_long_is_given_up(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create_postgres_store(database)
    monkeypatch.setattr(wire, "STATEMENT_MS", 100)
    store = PostgresStore(database)
    registry = Registry(store)
    registry.register(prompt="p", agent="codex", job_id="one")
    with psycopg.connect(database) as holder:
        holder.execute("SELECT FROM mam.job FOR UPDATE")
        with pytest.raises(StoreUnavailable, match="took too long"):
            registry.complete("one")
        assert registry.get("one").status == "pending"
        assert registry.pick("codex", owner="me") is None, "what another holds is as good as gone"
    assert registry.complete("one").status == "completed"
    check_journal(store)
    store.close()


def test_a_server_that_became_read_only_is_told(mam: Mam, database: str, admin: psycopg.Connection[Any]) -> None:
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
            for table in ("job", "journal", "event"):
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
    monkeypatch.setattr(postgres, "PATIENCE_SECONDS", 0.2)
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
