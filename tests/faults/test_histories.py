"""Many processes are killed, stopped past their lease and given wrong times: the history is linearizable."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from mam.agents.files_directory import FilesDirectory
from tests.faults.amount import DOSE
from tests.faults.histories import Histories, Plan
from tests.faults.session_histories import SessionHistories
from tests.faults.store_kinds import STORE_KINDS, StoreKind

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

SEEDS = range(6, 10 + 4 * DOSE)
"""The eighth history has many processes."""


class HistoryCheck(Protocol):
    def judged(self, folder: Path, plan: Plan) -> int: ...

    def close(self) -> None: ...


def calls_of(told: HistoryCheck, folder: Path, seed: int) -> int:
    try:
        return told.judged(folder, Plan.of(seed))
    finally:
        told.close()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("store_kind", STORE_KINDS.values(), ids=list(STORE_KINDS))
def test_a_crowd_on_one_host_is_as_one_after_the_other(folder: Path, store_kind: StoreKind, seed: int) -> None:
    store_kind.make(folder)
    assert calls_of(Histories(store_kind.open), folder, seed) > 50


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("store_kind", STORE_KINDS.values(), ids=list(STORE_KINDS))
def test_one_of_many_competing_sessions_wins(folder: Path, store_kind: StoreKind, seed: int) -> None:
    store_kind.make(folder)
    agents = str(folder / "agents")
    told = SessionHistories(lambda _place, clock: FilesDirectory(agents, clock), store_kind.open)
    assert calls_of(told, folder, seed) > 40


@pytest.mark.parametrize("seed", SEEDS)
def test_one_of_many_competing_sessions_wins_on_postgresql(folder: Path, database: str, seed: int) -> None:
    from mam.agents.postgres_directory import PostgresDirectory
    from mam.stores.postgres.store import PostgresStore, create_postgres_store

    create_postgres_store(database)
    told = SessionHistories(
        lambda _place, _clock: PostgresDirectory(database), lambda _place, _clock: PostgresStore(database),
    )  # fmt: skip
    assert calls_of(told, folder, seed) > 40


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crowd_on_postgresql_is_as_one_after_the_other(folder: Path, database: str, seed: int) -> None:
    from mam.stores.postgres.store import PostgresStore, create_postgres_store

    create_postgres_store(database)
    assert calls_of(Histories(lambda _place, _clock: PostgresStore(database), skips_locked=True), folder, seed) > 50
