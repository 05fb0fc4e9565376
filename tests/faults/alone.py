"""Faults that fork by the thousand, each struck by an interpreter of its own that has imported nothing else.

What a fork costs is the memory that parent and child then share and part with, page by page: from a process that has
also imported pytest and a driver of PostgreSQL it costs four times as much.

`python -m tests.faults.alone STRIKE ON DETAIL SEED TIMES FOLDER` strikes, and says how often it did.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mam.clock import Clock
    from mam.stores.port import Store

ROOT = Path(__file__).resolve().parents[2]


def alone(strike: str, on: str, detail: str, times: int, seed: int, folder: Path) -> int:
    """How often it struck; raises what was found."""
    words = [strike, on, detail, str(seed), str(times), str(folder)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.alone", *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        struck, said = process.communicate()
    except BaseException:
        process.terminate()  # it has to put away what it has mounted
        process.communicate()
        raise
    assert process.returncode == 0, said.strip() or f"ended by {-process.returncode}"
    return int(struck)


def chain(on: str, seam: str, seed: int, times: int, folder: Path) -> int:
    from tests.faults.acting import warm
    from tests.faults.chains import Chain
    from tests.faults.homes import HOMES

    warm(HOMES[on], folder)
    return Chain(HOMES[on], seam, folder / "place", seed).run(times)


def snapshots(on: str, seam: str, seed: int, times: int, folder: Path) -> int:
    from tests.faults.homes import HOMES
    from tests.faults.snapshots import Snapshots

    return Snapshots(HOMES[on], seam, folder, seed).run(times)


def cuts(on: str, kind: str, seed: int, times: int, folder: Path) -> int:
    from tests.faults.acting import warm
    from tests.faults.homes import HOMES
    from tests.faults.mounted import Outages, disk_of, why_not

    missing = why_not(kind)
    assert missing is None, f"NO POWER WAS CUT on {kind}: {missing}"
    warm(HOMES[on], folder)
    with disk_of(folder, kind) as disk:
        return Outages(HOMES[on], disk, seed).run(times)


def commands(on: str, _detail: str, seed: int, times: int, folder: Path) -> int:
    from tests.faults.culling import Culling
    from tests.faults.homes import HOMES

    return Culling(HOMES[on], folder, seed).run(times)


def histories(on: str, url: str, seed: int, times: int, folder: Path) -> int:
    """Each has a place and a seed of its own; on PostgreSQL one server serves them all."""
    from tests.faults.acting import warm
    from tests.faults.histories import Plan, judged
    from tests.faults.homes import HOMES

    if not url:
        warm(HOMES[on], folder)
    for number in range(seed * times, (seed + 1) * times):
        place = folder / str(number)
        place.mkdir()
        if url:
            judged(_postgres(url), place, Plan.of(number), skips_locked=True)
        else:
            HOMES[on].make(place)
            judged(partial(HOMES[on].open, place), place, Plan.of(number))
    return times


def _postgres(url: str) -> Callable[[Clock], Store]:
    from mam.stores.postgres.store import PostgresStore, create_postgres_store
    from tests.postgres.server import empty

    empty(url)
    create_postgres_store(url)
    return lambda _clock: PostgresStore(url)


def sessions(on: str, _detail: str, seed: int, times: int, folder: Path) -> int:
    from mam.agents.directory import FilesDirectory
    from tests.faults.acting import warm
    from tests.faults.histories import Plan
    from tests.faults.homes import HOMES
    from tests.faults.session_histories import judged_sessions

    warm(HOMES[on], folder)
    for number in range(seed * times, (seed + 1) * times):
        place = folder / str(number)
        HOMES[on].make(place)
        agents = str(place / "agents")
        judged_sessions(
            partial(FilesDirectory, agents), partial(HOMES[on].open, place), place, Plan.of(number),
            is_database=on != "files",
        )  # fmt: skip
    return times


STRIKES = {strike.__name__: strike for strike in (chain, snapshots, cuts, commands, histories, sessions)}


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    strike, on, detail, seed, times, folder = sys.argv[1:]
    try:
        struck = STRIKES[strike](on, detail, int(seed), int(times), Path(folder))
    except AssertionError as error:
        sys.exit(str(error))
    print(struck)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
