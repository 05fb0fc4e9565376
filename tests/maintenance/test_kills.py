"""Killed again and again in the middle of a migration: it goes on, and what comes out is the same."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from mam.errors import StoreMissing, StoreUnavailable
from mam.maintenance import batches
from tests.faults.killing import count_kill
from tests.maintenance.registries import contents, furnish, made, migrate, opened

KILLS = 50


def cut_off(origin: str, target: str, at: int) -> None:
    """In a process of its own: dies as soon as the `at`th batch of this run is in, or before it is acknowledged."""
    batches.AT_ONCE = 3
    done = 0

    def advance(_count: int) -> None:
        nonlocal done
        done += 1
        if done == at:
            os.kill(os.getpid(), signal.SIGKILL)

    migrate(origin, target, advance)


@pytest.mark.parametrize("kind", ["files", "sqlite", "postgresql"])
def test_a_migration_that_is_killed_fifty_times_is_complete(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    origin = str(tmp_path / "from")
    furnish(made(origin), 160)
    before = contents(opened(origin))
    target = {
        "files": lambda: str(tmp_path / "to"),
        "sqlite": lambda: f"sqlite://{tmp_path}/to.db",
        "postgresql": lambda: str(request.getfixturevalue("database")),
    }[kind]()
    context = multiprocessing.get_context("fork")
    for kill in range(1, KILLS + 1):
        process = context.Process(target=cut_off, args=(origin, target, kill))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        count_kill()
        with pytest.raises((StoreMissing, StoreUnavailable)):
            opened(target)
    migrate(origin, target)
    assert contents(opened(target)) == before == contents(opened(origin))
