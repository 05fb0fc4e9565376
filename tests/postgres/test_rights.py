"""Roles: what the documentation grants is enough and no more, and mam names a right that a role lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mam.errors import StoreUnavailable
from mam.jobs.pause import Pause
from mam.registry import Registry
from mam.stores.postgres.connection import Server
from mam.stores.postgres.limits import PATIENCE_SECONDS, STATEMENT_SECONDS
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import check_journal, register_jobs
from tests.cli.command import Mam
from tests.postgres.test_bad_input import VERBS, refused
from tests.sample_jobs import READERS, WRITERS, SampleJobs

STORES = (Path(__file__).resolve().parents[2] / "docs" / "stores.md").read_text(encoding="utf-8")
GRANTS = STORES.partition("```sql\n")[2].partition("```")[0]
"""What the documentation tells an administrator to type for a role that only works: no right to make or change the
schema, nor to delete jobs or their journal."""
JANITORS = STORES.partition("`mam prune` moves jobs")[2].partition("```sql\n")[2].partition("```")[0]


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
        verb(registry, SampleJobs(registry, name))
    registry = Registry(store)
    (first,) = register_jobs(registry, exclusive="gpu")
    register_jobs(registry, after=[first])
    registry.pause(Pause(agent="codex"))
    assert registry.resume("codex", None)
    registry.complete(first)
    assert registry.sweep() != []
    store.keep_secrets(first, {"auth_token": "t"})
    assert store.secrets(first) == {"auth_token": "t"}
    store.wait(store.end_offset(), 0.01)
    assert store.wait(store.end_offset(), 0.01) is False
    assert store.due_in() is not None
    check_journal(store)
    store.close()
    with psycopg.connect(address_for("worker", database), autocommit=True) as connection:
        for forbidden in (
            "CREATE TABLE mam.x ()", "DROP TABLE mam.job", "DELETE FROM mam.journal", "TRUNCATE mam.job",
            "UPDATE mam.journal SET lines = lines", "UPDATE mam.store SET journal_id = ''",
        ):  # fmt: skip
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


def test_a_role_without_rights_gets_a_clear_error(mam: Mam, database: str, worker: str) -> None:
    for verb in VERBS:
        ran = mam(*verb, "--store", address_for("worker", database))
        refused(ran, 9, "is there, but role worker may not use it", "its owner grants that (docs/stores.md)")
        assert "mam init" not in ran.stderr, "it would make nothing"


def test_the_error_names_the_role_if_the_address_does_not(
    mam: Mam, database: str, worker: str, admin: psycopg.Connection[Any]
) -> None:
    refused(mam("list", "--store", database.replace("//mam@", "//"), PGUSER="worker"), 9, "role worker may not use it")


def test_a_read_only_role_gets_a_clear_error_and_changes_nothing(
    mam: Mam, database: str, worker: str, admin: psycopg.Connection[Any]
) -> None:
    admin.execute("GRANT USAGE ON SCHEMA mam TO worker; GRANT SELECT ON ALL TABLES IN SCHEMA mam TO worker")
    Registry(PostgresStore(database)).register(prompt="p", agent="shell", job_id="one")
    url = address_for("worker", database)
    assert mam("status", "one", "--store", url).line == "pending"
    assert len(mam("list", "--store", url, "--json").json) == 1
    for verb in (("complete", "one"), ("pick", "-s", "shell"), ("register", "p", "--agent", "shell")):
        ran = mam(*verb, "--store", url)
        refused(ran, 9, "role worker may not do that (permission denied for ", "docs/stores.md says which rights")
    assert mam("status", "one", "--store", url).line == "pending"


def test_a_role_that_may_not_create_a_schema_gets_a_clear_error(
    mam: Mam, database: str, worker: str, admin: psycopg.Connection[Any]
) -> None:
    admin.execute("DROP SCHEMA mam CASCADE")
    ran = mam("init", "--store", address_for("worker", database))
    refused(ran, 9, "role worker may not do that (permission denied for database", "docs/stores.md")


def test_prune_needs_the_rights_of_worker_and_janitor(
    database: str, worker: str, admin: psycopg.Connection[Any]
) -> None:
    janitors = JANITORS.replace("janitor", "worker").encode()
    admin.execute(janitors)
    with pytest.raises(StoreUnavailable, match="role worker may not use it"):
        PostgresStore(address_for("worker", database))
    admin.execute(GRANTS.encode())
    store = PostgresStore(address_for("worker", database))
    registry = Registry(store)
    jobs = register_jobs(registry, 3)
    for job in jobs:
        registry.complete(job)
    assert registry.archive(jobs) == jobs[:2], "the newest stays"
    admin.execute(janitors.replace(b"GRANT", b"REVOKE").replace(b" TO ", b" FROM "))
    with pytest.raises(StoreUnavailable, match="permission denied for table"):
        registry.archive([*register_jobs(registry), jobs[2]])
    store.close()


def test_the_time_that_a_statement_has_is_mams_and_not_the_roles(
    database: str, worker: str, admin: psycopg.Connection[Any]
) -> None:
    admin.execute("ALTER ROLE worker SET statement_timeout = '5s'")
    with Server(address_for("worker", database)).connect() as connection:
        assert connection.execute("SHOW statement_timeout").fetchall() == [("30s",)]
    assert f"No statement takes longer than {STATEMENT_SECONDS:g} s" in STORES
    assert f"survives an unreachable server for {PATIENCE_SECONDS:g} s" in STORES


def test_a_role_reads_no_token_of_another(database: str, worker: str, admin: psycopg.Connection[Any]) -> None:
    admin.execute(GRANTS.encode())
    owner, other = PostgresStore(database), PostgresStore(address_for("worker", database))
    Registry(owner).register(prompt="p", agent="shell", job_id="owners", sign=True)
    Registry(other).register(prompt="p", agent="shell", job_id="workers", sign=True)
    assert other.secrets("workers") == owner.secrets("workers") != {}
    with pytest.raises(StoreUnavailable, match="role worker may not read the secrets of job owners"):
        other.secrets("owners")
    with psycopg.connect(address_for("worker", database)) as connection:
        assert connection.execute("SELECT job_id FROM mam.secret").fetchall() == [("workers",)]
    policy = STORES[STORES.index("CREATE POLICY relay") :].partition("\n")[0].replace("TO relay", "TO worker")
    admin.execute(policy.encode())
    assert other.secrets("owners") == owner.secrets("owners")
    owner.close()
    other.close()
