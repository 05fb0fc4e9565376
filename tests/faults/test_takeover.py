"""Many processes are killed and stopped while a synchronous standby takes over: the history is linearizable."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mam.errors import StoreUnavailable
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tests.faults.amount import DOSE
from tests.faults.histories import Histories, Plan
from tests.postgres.server import PrivateServer
from tests.postgres.standby import Standby, address
from tests.waiting import await_that

pytestmark = pytest.mark.timeout(600)

ASKS = 40
"""So many calls that processes still run when the standby takes over."""


@pytest.mark.parametrize("seed", range(2 * DOSE - 1))
def test_many_workers_continue_on_the_standby(folder: Path, seed: int) -> None:
    with TemporaryDirectory(prefix="mam-pg-") as name:
        os.chmod(name, 0o755)
        primary = PrivateServer(Path(name) / "primary")
        create_postgres_store(primary.url())
        standby = Standby(primary)
        standby.become_synchronous()
        url = address(primary, standby)

        asked_before: list[int] = []

        def take_over() -> None:
            await_that(lambda: asked(folder) >= ASKS)
            primary.stop("immediate")
            asked_before.append(asked(folder))
            standby.promote()

        histories = Histories(lambda _place, _clock: opened(url), skips_locked=True, in_the_middle=take_over)
        try:
            assert histories.judged(folder, Plan(seed=seed, processes=8, asks=ASKS)) > 100
            assert asked_before[0] < asked(folder) - ASKS, "the standby takes over in the middle"
        finally:
            histories.close()
            standby.stop()


def opened(url: str) -> PostgresStore:
    """Waits for a server: a process may start while there is none, and a new command would fail."""
    while True:
        try:
            return PostgresStore(url)
        except StoreUnavailable:
            continue


def asked(folder: Path) -> int:
    return sum(notes.read_bytes().count(b'["asked"') for notes in folder.glob("notes-*"))
