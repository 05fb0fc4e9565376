"""`make faults-long`: hours of faults, each from a seed, counted in docs/guarantees.md. It continues where it stopped.

python -m tests.faults.long [--hours H] [--jobs N] [--fresh] [--only WORD]   run, or continue
python -m tests.faults.long --replay NAME ON SEED                            repeat one of them
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.faults.counting import write_between
from tests.faults.units import PostgresHistories, Unit, units

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".faults"
AIMS = {"fork-kills": 1_000_000, "power cuts": 10_000, "strace kills": 10_000, "histories": 10_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--fresh", action="store_true", help="count from nothing, with the seeds from the first on")
    parser.add_argument("--only", metavar="WORD", default="", help="only faults and stores whose name has this")
    parser.add_argument("--replay", nargs=3, metavar=("NAME", "ON", "SEED"))
    chosen = parser.parse_args()
    if chosen.replay:
        name, on, seed = chosen.replay
        _replay(name, on, int(seed))
        return
    STATE.mkdir(exist_ok=True)
    if chosen.fresh:
        for old in STATE.glob("shard-*.json"):
            old.unlink()
    _run(time.monotonic() + chosen.hours * 3600, chosen.jobs, chosen.only)
    failures = _report()
    sys.exit(1 if failures else 0)


def _replay(name: str, on: str, seed: int) -> None:
    postgres = PostgresHistories()
    try:
        (unit,) = [unit for unit in units(postgres) if (unit.name, unit.on) == (name, on)]
        print(f"{name} on {on} from seed {seed}: struck {unit.run(seed)} times, all is well")
    finally:
        postgres.close()


def _run(ends: float, jobs: int, only: str) -> None:
    workers = []
    for shard in range(jobs):
        worker = os.fork()
        if worker == 0:
            os._exit(_shard(shard, jobs, ends, only))
        workers.append(worker)
    for worker in workers:
        os.waitpid(worker, 0)


def _shard(shard: int, jobs: int, ends: float, only: str) -> int:
    """Shards share no seed and begin with different units."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it must unmount and stop what it started
    state = _State(STATE / f"shard-{shard}.json")
    postgres = PostgresHistories()
    try:
        everything = [unit for unit in units(postgres) if only in f"{unit.name} on {unit.on}"]
        everything = everything[shard * len(everything) // jobs :] + everything[: shard * len(everything) // jobs]
        while everything and time.monotonic() < ends:
            reached = {name: state.struck(name) * jobs >= aim for name, aim in AIMS.items()}
            unit = min(everything, key=lambda unit: _turn(unit, state, reached))
            _strike(unit, state, shard, jobs)
    except KeyboardInterrupt:
        pass
    finally:
        postgres.close()
    return 0


def _turn(unit: Unit, state: _State, reached: dict[str, bool]) -> float:
    """The unit with the lowest value is next. Each gets time by its weight, and little once its aim is reached."""
    weight = unit.weight / (10 if reached.get(unit.name) else 1)
    seconds: float = state.of(unit)["seconds"]
    return seconds / weight


def _strike(unit: Unit, state: _State, shard: int, jobs: int) -> None:
    kept = state.of(unit)
    seed = kept["turns"] * jobs + shard + 1
    began = time.monotonic()
    try:
        struck = unit.run(seed)
    except Exception as error:
        struck = 0
        again = shlex.join(["python", "-m", "tests.faults.long", "--replay", unit.name, unit.on, str(seed)])
        print(f"FAILED {unit.name} on {unit.on}, seed {seed}: {error}\nreplay: {again}\n", file=sys.stderr, flush=True)
        kept["failures"].append([seed, str(error)[:2000]])
    kept["turns"] += 1
    kept["struck"] += struck
    kept["seconds"] += time.monotonic() - began
    state.save()


class _State:
    """What one shard has done. It is saved after each unit, so a killed run loses one unit at most."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._kept: dict[str, Any] = json.loads(file.read_bytes()) if file.exists() else {}

    def of(self, unit: Unit) -> dict[str, Any]:
        fresh = {"name": unit.name, "on": unit.on, "turns": 0, "struck": 0, "seconds": 0.0, "failures": []}
        kept: dict[str, Any] = self._kept.setdefault(f"{unit.name}: {unit.on}", fresh)
        return kept

    def struck(self, name: str) -> int:
        return sum(kept["struck"] for kept in self._kept.values() if kept["name"] == name)

    def save(self) -> None:
        temporary = self._file.with_suffix(".tmp")
        temporary.write_text(json.dumps(self._kept), encoding="utf-8")
        temporary.replace(self._file)


def _report() -> int:
    """Adds the shards up and writes the table. Returns how many units failed."""
    kept = [one for file in STATE.glob("shard-*.json") for one in json.loads(file.read_bytes()).values()]
    shards = len(list(STATE.glob("shard-*.json")))
    totals: dict[tuple[str, str], list[float]] = {}
    for one in kept:
        total = totals.setdefault((one["name"], one["on"]), [0, 0.0, 0])
        total[0] += one["struck"]
        total[1] += one["seconds"]
        total[2] += len(one["failures"])
    rows = [
        f"| {name} | {on} | {struck:,.0f} | {seconds / 60:.1f} | {failures:.0f} |"
        for (name, on), (struck, seconds, failures) in sorted(totals.items())
    ]
    hours = sum(total[1] for total in totals.values()) / 3600
    failures = int(sum(total[2] for total in totals.values()))
    sums = {name: sum(total[0] for (of, _on), total in totals.items() if of == name) for name in AIMS}
    reached = ", ".join(f"{sums[name]:,.0f} of {aim:,} {name}" for name, aim in AIMS.items())
    when = time.strftime("%Y-%m-%d", time.gmtime())
    head = (
        f"Run of {when} on {_commit()}: {hours:.1f} hours of work by {shards} processes; {failures} failed.\n"
        f"Aims: {reached}."
    )
    table = ["| fault | store | times | minutes | failed |", "|---|---|---|---|---|", *rows]
    write_between("long run", "\n".join((head, "", *table)))
    print(head)
    return failures


def _commit() -> str:
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return f"commit {asked.stdout.strip()}" if asked.returncode == 0 else "an unknown commit"


if __name__ == "__main__":
    main()
