"""Many processes, killed, stopped past their lease, lied to by the clock: one after the other would explain it all."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from mam.agents.directory import FilesDirectory
from mam.agents.directory_postgres import PostgresDirectory
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tests.faults.dose import DOSE
from tests.faults.histories import Plan, judged
from tests.faults.homes import HOMES, Home
from tests.faults.session_histories import judged_sessions

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

SEEDS = range(6, 10 + 4 * DOSE)
"""The eighth is a large crowd."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("home", HOMES.values(), ids=list(HOMES))
def test_a_crowd_on_one_host_is_as_one_after_the_other(folder: Path, home: Home, seed: int) -> None:
    home.make(folder)
    assert judged(partial(home.open, folder), folder, Plan.of(seed)) > 50


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("home", HOMES.values(), ids=list(HOMES))
def test_of_many_that_want_to_be_one_session_one_is(folder: Path, home: Home, seed: int) -> None:
    home.make(folder)
    agents = str(folder / "agents")
    opened = partial(home.open, folder)
    calls = judged_sessions(
        lambda clock: FilesDirectory(agents, clock), opened, folder, Plan.of(seed), is_database=home.name != "files"
    )
    assert calls > 40


@pytest.mark.parametrize("seed", SEEDS)
def test_of_many_that_want_to_be_one_session_on_postgresql_one_is(folder: Path, database: str, seed: int) -> None:
    create_postgres_store(database)
    calls = judged_sessions(
        lambda _clock: PostgresDirectory(database), lambda _clock: PostgresStore(database), folder, Plan.of(seed),
        is_database=True,
    )  # fmt: skip
    assert calls > 40


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crowd_on_postgresql_is_as_one_after_the_other(folder: Path, database: str, seed: int) -> None:
    create_postgres_store(database)
    assert judged(lambda _clock: PostgresStore(database), folder, Plan.of(seed), skips_locked=True) > 50
