"""Many processes, killed, stopped past their lease, lied to by the clock: one after the other would explain it all."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tests.faults.dose import DOSE
from tests.faults.histories import Plan, judged
from tests.faults.homes import HOMES, Home

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

SEEDS = range(1, 2 + 2 * DOSE)


def plan(seed: int) -> Plan:
    return Plan(seed=seed, processes=random.Random(seed).randint(8, 32))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("home", HOMES.values(), ids=list(HOMES))
def test_a_crowd_on_one_host_is_as_one_after_the_other(folder: Path, home: Home, seed: int) -> None:
    home.make(folder)
    assert judged(partial(home.open, folder), folder, plan(seed)) > 50


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crowd_on_postgresql_is_as_one_after_the_other(folder: Path, database: str, seed: int) -> None:
    create_postgres_store(database)
    assert judged(lambda _clock: PostgresStore(database), folder, plan(seed), skips_locked=True) > 50
