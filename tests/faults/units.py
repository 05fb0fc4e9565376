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

from mam.agents.directory import FilesDirectory
from mam.frozen import Frozen
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tests.faults.chains import Chain
from tests.faults.culling import Culling
from tests.faults.cutting import cut_everywhere
from tests.faults.histories import Plan, judged
from tests.faults.homes import HOMES, Home, quick_place
from tests.faults.killing import forked
from tests.faults.mounted import KINDS, Outages, disk_of, why_not
from tests.faults.session_histories import judged_sessions
from tests.faults.snapshots import Snapshots
from tests.faults.tracing import COMMANDS, Stage, failing

if TYPE_CHECKING:
    from tests.postgres.server import PrivateServer

CUTS_AT_ONCE = 100
KILLS_AT_ONCE = 800
MOMENTS_AT_ONCE = 8
SERVER_KILLS_AT_ONCE = 20
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider")
ERRORS = ("EIO", "ENOSPC", "EROFS", "EMFILE")
KILLING_TESTS = {
    "the inbox": "tests/inbox/test_kills.py",
    "the archive": "tests/files/test_archive_kill.py",
    "the audit log": "tests/audit/test_crashes.py",
}
"""Tests that kill before every step of something; each kill of theirs is counted."""


class Unit(Frozen):
    """A fault on a store. `strike` takes a seed and a folder, and raises when a promise is broken."""

    name: str
    on: str
    strike: Callable[[int, Path], int]

    def run(self, seed: int) -> int:
        with TemporaryDirectory(prefix="mam-faults-", dir=quick_place()) as folder:
            return self.strike(seed, Path(folder))


def in_a_process(strike: Callable[[], int]) -> int:
    """A seam is arranged for good: whoever arranges one does it in a process that ends with it."""
    reader, writer = os.pipe()
    child = forked()
    if child == 0:
        os.close(reader)
        try:
            said = f"{strike()}"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        with open(writer, "w", encoding="utf-8") as pipe:
            pipe.write(said)
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    assert said.isdecimal(), said or "the process was killed"
    return int(said)


def kills(home: Home, seam: str, seed: int, folder: Path) -> int:
    return in_a_process(lambda: Chain(home, seam, folder / "place", seed).run(KILLS_AT_ONCE))


def kill_points(home: Home, seam: str, seed: int, folder: Path) -> int:
    return in_a_process(lambda: Snapshots(home, seam, folder, seed).run(KILLS_AT_ONCE))


def kills_by_tests(test: str, _seed: int, folder: Path) -> int:
    """Their seams and their number of steps are their own; the count is kept by whoever kills."""
    counter = folder / "kills"
    counter.touch()
    _pytest(test, folder, {"MAM_COUNT_KILLS": str(counter)})
    return counter.stat().st_size


def disks(home: Home, seed: int, folder: Path) -> int:
    return cut_everywhere(home, folder, seed, 3 + seed % 4)


def cuts(home: Home, kind: str, seed: int, folder: Path) -> int:
    missing = why_not(kind)
    assert missing is None, f"NO POWER WAS CUT on {kind}: {missing}"
    with disk_of(folder, kind) as disk:
        return Outages(home, disk, seed).run(CUTS_AT_ONCE)


def command_kills(home: Home, seed: int, folder: Path) -> int:
    return Culling(home, folder, seed).run(MOMENTS_AT_ONCE)


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
    judged(partial(home.open, folder), folder, Plan.of(seed))
    return 1


def history_of_sessions(home: Home, seed: int, folder: Path) -> int:
    home.make(folder)
    agents = str(folder / "agents")
    opened = partial(home.open, folder)
    database = home.name != "files"
    judged_sessions(lambda clock: FilesDirectory(agents, clock), opened, folder, Plan.of(seed), is_database=database)
    return 1


class PostgresHistories:
    """One server for all of them."""

    def __init__(self) -> None:
        self._server: PrivateServer | None = None
        self._place: TemporaryDirectory[str] | None = None

    def __call__(self, seed: int, folder: Path) -> int:
        url = self._started().empty_database()
        create_postgres_store(url)
        judged(lambda _clock: PostgresStore(url), folder, Plan.of(seed), skips_locked=True)
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


def server_kills(_seed: int, folder: Path) -> int:
    """Backends, and every tenth time the whole server, under a mixed load."""
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
    for name, home in HOMES.items():
        for seam in home.seams:
            found += [
                Unit(name="fork-kills", on=f"{name} at each {seam}", strike=partial(kills, home, seam)),
                Unit(name="kill points", on=f"{name} at each {seam}", strike=partial(kill_points, home, seam)),
            ]
        found += [
            Unit(name="disks a power cut may leave", on=name, strike=partial(disks, home)),
            Unit(name="strace kills", on=name, strike=partial(command_kills, home)),
            Unit(name="strace errors", on=name, strike=partial(command_errors, home)),
            Unit(name="histories", on=name, strike=partial(history, home)),
            Unit(name="histories", on=f"sessions and {name}", strike=partial(history_of_sessions, home)),
        ]
        for kind in KINDS:
            found.append(Unit(name="power cuts", on=f"{name} on {kind}", strike=partial(cuts, home, kind)))
    for on, test in KILLING_TESTS.items():
        found.append(Unit(name="fork-kills", on=on, strike=partial(kills_by_tests, test)))
    found.append(Unit(name="histories", on="postgresql", strike=postgres))
    found.append(Unit(name="server kills", on="postgresql", strike=server_kills))
    return found
