"""The pieces of which a long run is made: one fault on one store from one seed, which says how often it struck."""

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

from mam.frozen import Frozen
from mam.registry import Registry
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tests.faults.acting import Life
from tests.faults.cutting import cut_everywhere
from tests.faults.histories import Plan, judged
from tests.faults.homes import HOMES, Home, copied, quick_place
from tests.faults.judging import check_store
from tests.faults.killing import kill_points
from tests.faults.mounted import KINDS, cut_while_it_works, disk_of, why_not
from tests.faults.tracing import COMMANDS, Stage, failing, killed

if TYPE_CHECKING:
    from tests.postgres.server import PrivateServer

CUTS_AT_ONCE = 20
SERVER_KILLS_AT_ONCE = 20
ERRORS = ("EIO", "ENOSPC", "EROFS", "EMFILE")


class Unit(Frozen):
    """A fault on a store. `strike` takes a seed and a folder, and raises when a promise is broken."""

    name: str
    on: str
    strike: Callable[[int, Path], int]
    in_memory: bool = True

    def run(self, seed: int) -> int:
        with TemporaryDirectory(prefix="mam-faults-", dir=quick_place() if self.in_memory else None) as folder:
            return self.strike(seed, Path(folder))


def kills(home: Home, seam: str, seed: int, folder: Path) -> int:
    """Killed before every step of one act in a life that chance has drawn."""
    origin, wreck = folder / "origin", folder / "wreck"
    home.make(origin)
    before = _lived(home, origin, seed, 8)
    copied(origin, wreck)

    def work(acknowledge: Callable[[str], None]) -> None:
        life = Life(Registry(home.open(wreck)), seed + 1)
        life.act()
        acknowledge(str(life.entries()))

    struck = 0
    for step, acknowledged in kill_points(home.seams[seam], work):
        struck += 1
        store = home.open(wreck)
        try:
            check_store(home, wreck, store)
            found = sum(1 for _ in store.entries(None))
            assert found >= max([before, *map(int, acknowledged)]), f"acknowledged and lost at step {step}"
        except AssertionError as error:
            raise AssertionError(f"killed before step {step}: {error}") from error
        finally:
            store.close()
        copied(origin, wreck)
    return struck


def _lived(home: Home, place: Path, seed: int, acts: int) -> int:
    store = home.open(place)
    life = Life(Registry(store), seed)
    for _ in range(acts):
        life.act()
    entries = life.entries()
    store.close()
    return entries


def disks(home: Home, seed: int, folder: Path) -> int:
    return cut_everywhere(home, folder, seed, 3 + seed % 4)


def cuts(home: Home, kind: str, seed: int, folder: Path) -> int:
    missing = why_not(kind)
    assert missing is None, f"NO POWER WAS CUT on {kind}: {missing}"
    with disk_of(folder, kind) as disk:
        for turn in range(CUTS_AT_ONCE):
            cut_while_it_works(home, disk, seed * 1000 + turn)
    return CUTS_AT_ONCE


def command_kills(home: Home, seed: int, folder: Path) -> int:
    verb = sorted(COMMANDS)[seed % len(COMMANDS)]
    stage = Stage(home, folder)
    moments, expected = stage.moments(verb), stage.undisturbed(verb)
    some = moments[seed // len(COMMANDS) % 4 :: 4]
    return sum(killed(stage, verb, moment, expected) for moment in some)


def command_errors(home: Home, seed: int, folder: Path) -> int:
    verb = sorted(COMMANDS)[seed % len(COMMANDS)]
    stage = Stage(home, folder)
    moments = [moment for moment in stage.moments(verb) if moment.call != "fcntl"]
    expected = stage.undisturbed(verb)
    some = moments[seed // len(COMMANDS) % 4 :: 4]
    for moment in some:
        failing(stage, verb, moment, random.Random(f"{seed} {moment}").choice(ERRORS), expected)
    return len(some)


def history(home: Home, seed: int, folder: Path) -> int:
    home.make(folder)
    judged(partial(home.open, folder), folder, Plan(seed=seed, processes=random.Random(seed).randint(8, 32)))
    return 1


class PostgresHistories:
    """One server for all of them."""

    def __init__(self) -> None:
        self._server: PrivateServer | None = None
        self._place: TemporaryDirectory[str] | None = None

    def __call__(self, seed: int, folder: Path) -> int:
        url = self._started().empty_database()
        create_postgres_store(url)
        plan = Plan(seed=seed, processes=random.Random(seed).randint(8, 32))
        judged(lambda _clock: PostgresStore(url), folder, plan, skips_locked=True)
        return 1

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


def server_kills(_seed: int, _folder: Path) -> int:
    """Backends, and every tenth time the whole server, under a mixed load."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*pytest, "tests/postgres/test_kills.py"],
        cwd=Path(__file__).resolve().parents[2], env={**os.environ, "MAM_KILLS": str(SERVER_KILLS_AT_ONCE)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:]
    return SERVER_KILLS_AT_ONCE


def units(postgres: PostgresHistories) -> list[Unit]:
    found = []
    for name, home in HOMES.items():
        for seam in home.seams:
            found.append(Unit(name="fork-kills", on=f"{name} at each {seam}", strike=partial(kills, home, seam)))
        found += [
            Unit(name="disks a power cut may leave", on=name, strike=partial(disks, home)),
            Unit(name="strace kills", on=name, strike=partial(command_kills, home)),
            Unit(name="strace errors", on=name, strike=partial(command_errors, home)),
            Unit(name="histories", on=name, strike=partial(history, home)),
        ]  # fmt: skip
        for kind in KINDS:
            strike = partial(cuts, home, kind)
            found.append(Unit(name="power cuts", on=f"{name} on {kind}", strike=strike, in_memory=False))
    found.append(Unit(name="histories", on="postgresql", strike=postgres))
    found.append(Unit(name="server kills", on="postgresql", strike=server_kills))
    return found
