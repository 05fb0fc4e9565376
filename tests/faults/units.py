"""The parts of a long run: one fault on one store from one seed, which returns how often it occurred."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from mam.util.frozen import Frozen
from tests.faults.isolated import alone
from tests.faults.mounted import KINDS
from tests.faults.power_cuts import cut_everywhere
from tests.faults.store_kinds import STORE_KINDS, StoreKind, quick_place
from tests.faults.tracing import COMMANDS, PreparedStore, failing

if TYPE_CHECKING:
    from tests.postgres.server import PrivateServer

CUTS_AT_ONCE = 200
KILLS_AT_ONCE = 1500
MOMENTS_AT_ONCE = 12
HISTORIES_AT_ONCE = 20
SERVER_KILLS_AT_ONCE = 20
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider")
ERRORS = ("EIO", "ENOSPC", "EROFS", "EMFILE")
KILLING_TESTS = {
    "the inbox": "tests/inbox/test_kills.py",
    "the archive": "tests/files/test_archive_kill.py",
    "the audit log": "tests/audit/test_crashes.py",
}
"""Tests that kill before every step of something; each kill of theirs is counted."""


AT_WORK = {
    "workers": "tests/work/test_worker_kills.py",
    "relays": "tests/bus/test_relay.py::test_a_relay_killed_again_and_again_loses_nothing",
    "migrations": "tests/maintenance/test_kills.py",
}
"""Tests that repeatedly kill a long-running process at a random moment."""
ON_A_REAL_DISK = 10
"""A killed process leaves the same in memory as on a disk; every tenth seed checks that on the disk."""


class Unit(Frozen):
    """A fault on a store. `strike` takes a seed and a folder, and raises when a promise is broken."""

    name: str
    on: str
    strike: Callable[[int, Path], int]
    weight: float
    """How much more time than another it has in a long run."""

    def run(self, seed: int) -> int:
        place = quick_place() if seed % ON_A_REAL_DISK else None
        with TemporaryDirectory(prefix="mam-faults-", dir=place) as folder:
            return self.strike(seed, Path(folder))


def kills_by_tests(test: str, seed: int, folder: Path) -> int:
    """These tests define their own seams and steps; the killing function counts."""
    counter = folder / "kills"
    counter.touch()
    _pytest(test, folder, {"MAM_COUNT_KILLS": str(counter), "MAM_WORKER_KILLS_SEED": str(seed)})
    return counter.stat().st_size


def disks(store_kind: StoreKind, seed: int, folder: Path) -> int:
    return cut_everywhere(store_kind, folder, seed, 3 + seed % 4)


def command_errors(store_kind: StoreKind, seed: int, folder: Path) -> int:
    verb = sorted(COMMANDS)[seed % len(COMMANDS)]
    prepared = PreparedStore(store_kind, folder)
    moments = [moment for moment in prepared.moments(verb) if moment.call != "fcntl"]
    expected = prepared.undisturbed(verb)
    some = moments[seed // len(COMMANDS) % 4 :: 4]
    for moment in some:
        failing(prepared, verb, moment, random.Random(f"{seed} {moment}").choice(ERRORS), expected)
    return len(some)


class PostgresHistories:
    """One server serves all histories."""

    def __init__(self) -> None:
        self._server: PrivateServer | None = None
        self._place: TemporaryDirectory[str] | None = None

    def __call__(self, seed: int, folder: Path) -> int:
        return alone("histories", "postgresql", self._started().url(), HISTORIES_AT_ONCE, seed, folder)

    def close(self) -> None:
        if self._server is not None and self._place is not None:
            self._server.stop()
            self._place.cleanup()

    def _started(self) -> PrivateServer:
        if self._server is None:
            from tests.postgres.server import PrivateServer

            self._place = TemporaryDirectory(prefix="mam-pg-")
            os.chmod(self._place.name, 0o755)
            self._server = PrivateServer(Path(self._place.name) / "server")
        return self._server


def server_kills(_seed: int, folder: Path) -> int:
    """Kills backends, and every tenth time the whole server, under a mixed load."""
    _pytest("tests/postgres/test_kills.py", folder, {"MAM_KILLS": str(SERVER_KILLS_AT_ONCE)})
    return SERVER_KILLS_AT_ONCE


def _pytest(test: str, folder: Path, environment: dict[str, str]) -> None:
    ran = subprocess.run(
        [*PYTEST, "--basetemp", str(folder / "pytest"), test],
        cwd=Path(__file__).resolve().parents[2], env={**os.environ, **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:]


def units(postgres: PostgresHistories) -> list[Unit]:
    found = []
    for name, store_kind in STORE_KINDS.items():
        for seam in store_kind.seams:
            on = f"{name} at each {seam}"
            found += [
                Unit(name="fork-kills", on=on, strike=partial(alone, "chain", name, seam, KILLS_AT_ONCE), weight=6),
                Unit(
                    name="kill points", on=on, strike=partial(alone, "snapshots", name, seam, KILLS_AT_ONCE), weight=1
                ),
            ]
        for kind in KINDS:
            strike = partial(alone, "cuts", name, kind, CUTS_AT_ONCE)
            found.append(Unit(name="power cuts", on=f"{name} on {kind}", strike=strike, weight=2))
        found += [
            Unit(name="strace kills", on=name, strike=partial(alone, "commands", name, "", MOMENTS_AT_ONCE), weight=5),
            Unit(name="histories", on=name, strike=partial(alone, "histories", name, "", HISTORIES_AT_ONCE), weight=5),
            Unit(name="histories", on=f"sessions and {name}",
                 strike=partial(alone, "sessions", name, "", HISTORIES_AT_ONCE), weight=5),
            Unit(name="disks a power cut may leave", on=name, strike=partial(disks, store_kind), weight=0.5),
            Unit(name="strace errors", on=name, strike=partial(command_errors, store_kind), weight=0.5),
        ]  # fmt: skip
    for on, test in KILLING_TESTS.items():
        found.append(Unit(name="fork-kills", on=on, strike=partial(kills_by_tests, test), weight=0.5))
    for on, test in AT_WORK.items():
        found.append(Unit(name="kills at work", on=on, strike=partial(kills_by_tests, test), weight=0.5))
    found.append(Unit(name="histories", on="postgresql", strike=postgres, weight=1))
    found.append(Unit(name="server kills", on="postgresql", strike=server_kills, weight=0.3))
    return found
