"""Runs faults that fork thousands of times, each kind in an interpreter that has imported nothing else.

A fork costs what parent and child later copy, page by page. From a process that has also imported pytest and psycopg
it costs four times as much.

`python -m tests.faults.isolated STRIKE ON DETAIL SEED TIMES FOLDER` prints how many faults it caused.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tests.faults.histories import Plan

ROOT = Path(__file__).resolve().parents[2]


def alone(strike: str, on: str, detail: str, times: int, seed: int, folder: Path) -> int:
    """Returns how many faults it caused; raises if a promise was broken."""
    words = [strike, on, detail, str(seed), str(times), str(folder)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.isolated", *words], cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        struck, said = process.communicate()
    except BaseException:
        process.terminate()  # it must unmount what it has mounted
        process.communicate()
        raise
    assert process.returncode == 0, said.strip() or f"ended by {-process.returncode}"
    return int(struck)


def chain(on: str, seam: str, seed: int, times: int, folder: Path) -> int:
    from tests.faults.chains import Chain
    from tests.faults.random_life import warm
    from tests.faults.store_kinds import STORE_KINDS

    warm(STORE_KINDS[on], folder)
    return Chain(STORE_KINDS[on], seam, folder / "place", seed).run(times)


def snapshots(on: str, seam: str, seed: int, times: int, folder: Path) -> int:
    from tests.faults.snapshots import Snapshots
    from tests.faults.store_kinds import STORE_KINDS

    return Snapshots(STORE_KINDS[on], seam, folder, seed).run(times)


def cuts(on: str, kind: str, seed: int, times: int, folder: Path) -> int:
    from tests.faults.mounted import PowerCutSeries, disk_of, why_not
    from tests.faults.random_life import warm
    from tests.faults.store_kinds import STORE_KINDS

    missing = why_not()
    assert missing is None, f"NO POWER WAS CUT on {kind}: {missing}"
    warm(STORE_KINDS[on], folder)
    with disk_of(folder, kind) as disk:
        return PowerCutSeries(STORE_KINDS[on], disk, seed).run(times)


def commands(on: str, _detail: str, seed: int, times: int, folder: Path) -> int:
    from tests.faults.command_kills import CommandKills
    from tests.faults.store_kinds import STORE_KINDS

    return CommandKills(STORE_KINDS[on], folder, seed).run(times)


def histories(on: str, url: str, seed: int, times: int, folder: Path) -> int:
    """On PostgreSQL, one server serves all histories."""
    from tests.faults.histories import Histories
    from tests.faults.random_life import warm
    from tests.faults.store_kinds import STORE_KINDS

    if url:
        from mam.stores.postgres.store import PostgresStore, create_postgres_store
        from tests.postgres.server import empty

        def make(_place: Path) -> None:
            empty(url)
            create_postgres_store(url)

        return _all_judged(
            Histories(lambda _place, _clock: PostgresStore(url), skips_locked=True), make, seed, times, folder
        )
    warm(STORE_KINDS[on], folder)
    return _all_judged(Histories(STORE_KINDS[on].open), STORE_KINDS[on].make, seed, times, folder)


def sessions(on: str, _detail: str, seed: int, times: int, folder: Path) -> int:
    from mam.agents.files_directory import FilesDirectory
    from tests.faults.random_life import warm
    from tests.faults.session_histories import SessionHistories
    from tests.faults.store_kinds import STORE_KINDS

    warm(STORE_KINDS[on], folder)
    told = SessionHistories(lambda place, clock: FilesDirectory(str(place / "agents"), clock), STORE_KINDS[on].open)
    return _all_judged(told, STORE_KINDS[on].make, seed, times, folder)


class HistoryCheck(Protocol):
    def judged(self, folder: Path, plan: Plan) -> int: ...

    def close(self) -> None: ...


def _all_judged(told: HistoryCheck, make: Callable[[Path], None], seed: int, times: int, folder: Path) -> int:
    """Each history has a directory and a seed of its own."""
    from tests.faults.histories import Plan

    for number in range(seed * times, (seed + 1) * times):
        place = folder / str(number)
        place.mkdir()
        make(place)
        told.judged(place, Plan.of(number))
        shutil.rmtree(place)
    told.close()
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
