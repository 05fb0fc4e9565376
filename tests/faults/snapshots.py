"""Copies the disk before each step of an act: all that a kill there would leave, without killing a process.

A process that is forked and killed spends most of its time on memory that it shares with its parent. Here one process
acts and copies the disk before each step. Each copy is then opened and checked, and the acts continue in one of them.
The effects of the death of a process (its locks are free) are left to `chains.py`.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

from mam.registry import Registry
from tests.faults.invariants import Told, check_files, check_no_problems
from tests.faults.random_life import Life
from tests.faults.store_kinds import Home

MOST_JOBS = 12
"""Then a new store is begun: putting a wreck aside costs as much as it has files."""
THOROUGH = 25


class Snapshots:
    """Lives at one seam. The seam is arranged once for this process; nothing else may use the stores meanwhile."""

    def __init__(self, home: Home, seam: str, folder: Path, seed: int) -> None:
        self._home = home
        self._folder = folder
        self._seed = seed
        self._chance = random.Random(f"snapshots {seed}")
        self._armed = False
        self._told = Told()
        self._acts = 0
        self._wrecks: list[Path] = []
        self._place = folder / "place"
        self.points = 0
        self._kept = home.seams[seam](self._count)
        home.make(self._place)

    def run(self, points: int) -> int:
        while self.points < points:
            self._in_transaction()
        return self.points

    @property
    def where(self) -> str:
        return f"act {self._acts} killed before step {len(self._wrecks)}"

    def _count(self) -> None:
        if self._armed:
            self._armed = False  # what follows goes through the seam too
            wreck = self._folder / f"wreck-{len(self._wrecks)}"
            put_aside(self._place, wreck)
            self._wrecks.append(wreck)
            self._armed = True

    def _in_transaction(self) -> None:
        if len(self._told.records) > MOST_JOBS:
            shutil.rmtree(self._place)
            self._home.make(self._place)
            self._told = Told()
        store = self._home.open(self._place)
        self._told.follow(store)
        before = self._told.number
        life = Life(Registry(store), f"{self._seed} {self._acts}", self._told)
        self._acts += 1
        self._armed = True
        life.act()
        self._armed = False
        after = life.entries()
        put_aside(self._place, self._folder / f"wreck-{len(self._wrecks)}")
        self._wrecks.append(self._folder / f"wreck-{len(self._wrecks)}")
        store.close()
        shutil.rmtree(self._place)
        heirs = [self._judged(wreck, at_least=before) for wreck in self._wrecks[:-1]]
        self.points += len(heirs)
        heirs.append(self._judged(self._wrecks[-1], at_least=after))
        self._go_on_in(self._chance.randrange(len(heirs)), heirs)

    def _judged(self, wreck: Path, *, at_least: int) -> Told:
        told = self._told.copied()
        store = self._home.open(wreck)
        try:
            tail = told.follow(store)
            assert told.number >= at_least, f"{at_least} were acknowledged, {told.number} are there"
            if self._chance.randrange(THOROUGH) == 0:
                told.check_everything(store)
                check_files(self._home, wreck, store)
            else:
                some = self._chance.sample(sorted(told.records), min(2, len(told.records)))
                for job_id in {*some, *(entry.job_id for entry in tail)}:
                    told.check_job(store, job_id)
                check_no_problems(store)
        except AssertionError as error:
            raise AssertionError(f"{self._home.name}, {self.where}, wreck {wreck.name}: {error}") from error
        finally:
            store.close()
        return told

    def _go_on_in(self, chosen: int, heirs: list[Told]) -> None:
        for place, wreck in enumerate(self._wrecks):
            if place == chosen:
                wreck.rename(self._place)
            else:
                shutil.rmtree(wreck)
        self._told, self._wrecks = heirs[chosen], []


def put_aside(place: Path, wreck: Path) -> None:
    """The same tree, times included. A record is never written in place, so a second name for it is a copy, and it is
    the same file for an index that knows its inode."""
    wreck.mkdir(mode=0o700)
    for entry in os.scandir(place):
        there = wreck / entry.name
        if entry.is_dir(follow_symlinks=False):
            put_aside(Path(entry.path), there)
        elif entry.name.endswith(".json"):
            os.link(entry.path, there)
        else:
            shutil.copy2(entry.path, there)
    known = place.stat()
    os.utime(wreck, ns=(known.st_atime_ns, known.st_mtime_ns))
