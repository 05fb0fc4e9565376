"""schemathesis calls every operation of the description, with all of its checks and along its links, on each store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.util.clock import SystemClock
from tests.serve.serving import serving

if TYPE_CHECKING:
    from mam.stores.port import Store

ROOT = Path(__file__).parents[2]
EXAMPLES = os.environ.get("MAM_SCHEMATHESIS", "2")
"""Of each operation, for what is made at random; more of them take minutes."""
ALL, LISTED = "fuzzing,stateful", "coverage"
"""What is made at random and along the links, and what schemathesis lists: each limit, each missing part."""


def store_of(kind: str, request: pytest.FixtureRequest, directory: Path) -> Store:
    if kind == "memory":
        return MemoryStore(SystemClock())
    if kind == "postgres":
        from mam.stores.postgres.store import PostgresStore, create_postgres_store

        address: str = request.getfixturevalue("database")
        create_postgres_store(address)
        return PostgresStore(address)
    path = str(directory / "jobs.db")
    create_sqlite_store(path)
    return SqliteStore(path)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("phases", [ALL, LISTED])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_the_api_does_what_it_describes(kind: str, phases: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    store = store_of(kind, request, tmp_path)
    with serving(Registry(store)) as served:
        token = served.token("admin", name="fuzz")
        kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        ran = subprocess.run(
            [
                sys.executable, "-m", "schemathesis.cli",
                "--config-file", str(ROOT / "tests" / "serve" / "schemathesis.toml"),
                "run", f"{served.url}/api/v1/openapi.json",
                "--header", f"Authorization: Bearer {token}", "--checks", "all", "--max-examples", EXAMPLES,
                "--phases", phases, "--seed", "1", "--no-color",
                "--request-timeout", "60",
            ],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=880,
            env={**kept, "SCHEMATHESIS_HOOKS": "tests.serve.schemathesis_hooks", "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    store.close()
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr
